"""HYBRIDJOIN (HYBRIDJOIN 2011, section 4.2; X-HYBRIDJOIN 2013, section 3)."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from semistream.front_stage import FrontStage
from semistream.joins.semi_stream_join import SemiStreamJoin
from semistream.memory_split import heap_blocks
from semistream.page_choice import OldestFirst, PageChoice
from semistream.relation.base import Page
from semistream.row_store import BLOCK_BYTES
from semistream.single_rows import SingleRows
from semistream.stream_table import START
from semistream.waiting_tuples import WaitingTuples

__all__ = ["HybridJoin"]

_MOST_AHEAD = 4096
_NO_PAGES = range(0)


class HybridJoin(SemiStreamJoin):
    """Reads the partition of the oldest waiting tuple and joins it with all tuples that wait.

    The paper reads w tuples or none. This join reads the tuples that have arrived, so that none stays in the stream
    buffer when the stream pauses.

    Args:
        *args: as in `SemiStreamJoin`.
        page_choice: chooses the tuple whose partition is read next; by default the oldest.
        from_key: start each partition at the page of that tuple, to repeat the papers' measurements.
        single_rows_below: read the rows of partitions that would serve fewer tuples one by one. 0 reads whole
            partitions only, as the papers do.
        **kwargs: as in `SemiStreamJoin`.
    """

    paper_name: ClassVar[str] = "HYBRIDJOIN"

    def __init__(
        self,
        *args: Any,  # noqa: ANN401
        page_choice: PageChoice | None = None,
        from_key: bool = False,
        single_rows_below: float = 0,
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(*args, **kwargs)
        self.disk_buffer.from_key = from_key
        self.page_choice = page_choice or OldestFirst()
        if single_rows_below and not self.relation.reads_rows:
            raise ValueError(
                f"single_rows_below must be 0 for a relation that reads whole pages only, got {single_rows_below}: "
                "leave it out, or use a page file"
            )
        self.single_rows = SingleRows(single_rows_below)

    def _stream_phase(self) -> None:
        """Lines 3 to 6: read w tuples from the stream buffer into H, and their keys into Q."""
        while len(self.stream_buffer) and self._probe_front_stage(room=self.waiting.room):
            pass

    def divide_anew(self, front_stage: float) -> list[Any]:
        """Give the front stage another share of the memory, and H_S the rest.

        All waiting tuples are joined first. Then the memory of H_S is free for rows that stay cached: the most frequent
        ones, as many as fit beside the front stage.

        Returns:
            The output of the tuples that waited.
        """
        if not (self.needs.front_stage and self.partitioned):
            raise ValueError(
                f"front_stage must belong to a join that has one, {type(self).__name__} has none to change"
            )
        shares = replace(self.shares, front_stage=front_stage)
        split = self._divide(self._master, shares)  # refuses what does not fit, while nothing has changed
        joined = SemiStreamJoin.finish(self)
        before = self.front_stage
        others = self.memory_used() - self.waiting.nbytes - before.nbytes
        row_bytes = FrontStage.bytes_per_slot(self.cached) + heap_blocks(self.cached, shares) * (BLOCK_BYTES + 4)
        beside = (self.memory - others) // row_bytes - max(before.cache.slots, split.cache_slots)
        beside = beside * row_bytes // (row_bytes + FrontStage.BYTES_TO_RANK)
        hits, known_absent, threshold = before.hits, before.known_absent, before.recorder.threshold
        self.waiting = WaitingTuples(self.kept, 0, 0)
        kept, frequency = before.most_frequent(max(0, min(beside, split.cache_slots)))
        del before, self.front_stage  # its memory is free before the next one is made
        self.shares, self.split = shares, split
        self.front_stage = self._make_front_stage()
        self.front_stage.hits, self.front_stage.known_absent = hits, known_absent
        self.front_stage.recorder.threshold = threshold
        self.front_stage.admit(kept, np.arange(len(frequency)), frequency)
        del kept
        self.waiting = WaitingTuples(self.kept, split.waiting_slots, split.waiting_blocks)
        return joined

    def _disk_phase(self) -> None:
        """Read from R what the oldest tuples wait for."""
        if self.single_rows.pay(len(self.waiting)):
            self._join_single_rows()
            return
        before = len(self.waiting)
        self._join_next_partition()
        self.single_rows.note(before - len(self.waiting))

    def _join_next_partition(self) -> None:
        """Lines 7 to 15: read the partition of the oldest tuple, output all its matches and delete them."""
        g, page = self._next_page()
        if page < 0:
            return
        key = int(self.waiting.keys(np.array([g]))[0])
        partition = self.disk_buffer.partition(page)
        self._join_partition(partition)
        if g in self.waiting.queue:
            self._join_other_candidates(g, key, partition)

    def _join_single_rows(self) -> None:
        """Join the oldest tuples: read a partition whole if it is worth that, and single rows of all others."""
        slots = self.waiting.queue.oldest(self.disk_buffer.single_rows)
        keys = self.waiting.keys(slots)
        # The oldest comes first: if the strings of all do not fit, it is read all the same, and does not wait for ever.
        keys = np.concatenate([keys[:1], np.unique(keys[keys != keys[0]])])
        positions = self.relation.find(keys)
        absent = positions < 0
        if absent.any():
            self._output_absent(keys[absent])
            keys, positions = keys[~absent], positions[~absent]
        if not len(keys):
            return
        partitions = positions // (self.relation.page_rows * self.disk_buffer.partition_pages)
        whole = self.single_rows.worth_reading(partitions, len(self.waiting) / len(slots))
        for partition in whole.tolist():
            self._join_partition(self.disk_buffer.partition(partition * self.disk_buffer.partition_pages))
        single = ~np.isin(partitions, whole)
        rows = self.disk_buffer.read_rows(positions[single], keys[single])
        self._join(rows)
        if not self.relation.codec.exact:
            slots = slots[np.isin(self.waiting.keys(slots), rows.keys)]
            for g in slots.tolist():
                if g in self.waiting.queue:  # its fingerprint is that of another key, too
                    self._join_other_candidates(g, int(self.waiting.keys(np.array([g]))[0]), _NO_PAGES)

    def _next_page(self) -> tuple[int, int]:
        """Choose a waiting tuple and look up its page. If R lacks its key, output it as unmatched and try the next.

        CHYBRIDJOIN 2017, algorithm 1, lines 7 to 11. Each attempt looks up twice as many keys at once as the one
        before.

        Returns:
            The tuple's slot and its page; -1 and -1 when no tuple is left.
        """
        ahead = 1
        while len(self.waiting):
            g = self.page_choice.next(self.waiting)
            page = int(self.relation.locate(self.waiting.keys(np.array([g])))[0])
            if page >= 0:
                return g, page
            slots = np.append(self.waiting.queue.oldest(ahead), g)
            self._output_absent(np.unique(self.waiting.keys(slots)))
            ahead = min(2 * ahead, _MOST_AHEAD)
        return -1, -1

    def _output_absent(self, keys: np.ndarray) -> None:
        """Find those of `keys` that the index of R lacks, and output their waiting tuples as unmatched."""
        absent = keys[self.relation.locate(keys) < 0]
        self._remember_absent(absent)
        cursor = START
        while cursor[0] < len(absent):
            found, cursor = self.waiting.table.pop(absent, cursor, self._found_slots, self._found_rows)
            self._output.unmatched(self.waiting.rows, self._found_slots[:found])
            self.waiting.release(self._found_slots[:found])

    def _join_partition(self, partition: range) -> None:
        for page in partition:
            self._join(self.disk_buffer.read(page))

    def _join(self, page: Page) -> None:
        """Output r joined with H for each tuple r of the page, in portions that fit into memory; delete the matches.

        If 64-bit keys are not exact, a tuple stays in H until its match is confirmed.
        """
        find = self.waiting.table.pop if self.relation.codec.exact else self.waiting.table.probe
        self.probed += len(page.keys)
        cursor = START
        while cursor[0] < len(page.keys):
            found, cursor = find(page.keys, cursor, self._found_slots, self._found_rows)
            slots, rows = self._found_slots[:found], self._found_rows[:found]
            if not self.relation.codec.exact:
                slots, rows = self._confirmed(page, slots, rows)
                self.waiting.table.delete(slots)
            self._output.joined(self.waiting.rows, slots, self._output_rows(page), rows)
            self._update_cache(page, rows)
            self.waiting.release(slots)

    def _join_other_candidates(self, g: int, key: int, partition: range) -> None:
        """Join a tuple with the other pages that can have its key; if none matches, output it as unmatched.

        Its partition had no match because fingerprints collide or the master row was deleted.
        """
        for candidate in self.relation.candidates(key):
            if candidate not in partition:
                self._join(self.disk_buffer.read(candidate))
            if g not in self.waiting.queue:
                return
        slots = np.array([g])
        self._output.unmatched(self.waiting.rows, slots)
        self.waiting.delete(slots)

    def _update_cache(self, page: Page, matched: np.ndarray) -> None:
        """Do nothing: HYBRIDJOIN has no cache."""

    def _remember_absent(self, keys: np.ndarray) -> None:
        """Do nothing: HYBRIDJOIN has no front stage."""
