"""MESHJOIN (MESHJOIN 2007, section 3.1, figure 4)."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from semistream.joins.semi_stream_join import SemiStreamJoin
from semistream.memory_split import Needs, Shares
from semistream.relation.base import Page, Relation
from semistream.stream_table import START, Cursor

__all__ = ["MeshJoin"]


class MeshJoin(SemiStreamJoin):
    """Scans R in a cycle and joins each partition with a window of the stream; needs no index.

    A tuple leaves the window once it has met all pages of R. The window holds k chunks of w tuples, where k is the
    number of partitions. A chunk begins at the page that is read next, and leaves when the scan is back at that page.
    So partitions can change their size between two iterations: the scan stops at each page where a chunk began, and
    chunks begin only where one of the new partitions does. If R grows, its new pages come in between, before page 0.
    """

    paper_name: ClassVar[str] = "MESHJOIN"
    unique_key: ClassVar[bool] = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self._matched = np.zeros(self.waiting.slots, dtype=np.bool_)
        most = max(1, self.relation.most_pages)
        self._chunks = np.zeros(most, dtype=np.int64)  # tuples of each chunk, by the page that they met first
        self._next_page = 0
        self._entered = 0  # tuples that entered the window since the last iteration

    @property
    def k(self) -> int:
        """Count the partitions of R: iterations until a tuple has met all of R."""
        return max(1, self.disk_buffer.partitions)

    @property
    def pages(self) -> int:
        """Count the pages of R, which may grow; an empty R counts as one."""
        return max(1, self.relation.pages)

    def read_partitions_of(self, pages: int) -> None:
        """Read partitions of this many pages from the next iteration on; h_S must be enough for a tuple in each."""
        all_pages, slots = self.relation.pages, self.waiting.slots
        if self._least_waiting(-(-all_pages // max(pages, 1))) > slots:
            raise ValueError(
                f"partition_pages must be at least {-(-all_pages // slots)}, so that R has no more partitions than the "
                f"{slots} tuples that can wait, got {pages}: use larger partitions, or give the join more memory"
            )
        super().read_partitions_of(pages)

    def memory_used(self) -> int:
        """Count the bytes of all parts, buffers at their full size."""
        return super().memory_used() + self._matched.nbytes + self._chunks.nbytes

    def _stream_phase(self) -> None:
        """Lines 2, 7 and 8: read w tuples of S, add them to H and enqueue them in Q."""
        if self.pending and self._next_page != self.disk_buffer.partition(self._next_page).start:
            return  # in the middle of a partition, after their size has changed
        while len(self.stream_buffer) and (room := min(self._chunk_size() - self._entered, self.waiting.room)) > 0:
            before = len(self.waiting)
            read = self._probe_front_stage(room)
            self._entered += len(self.waiting) - before
            if not read:
                return

    def _disk_phase(self) -> None:
        """Lines 2, 9, 10: join the next partition of R with H. Then expire the tuples that have met all of R."""
        partition = self._next_partition()
        for page in partition if self.relation.pages else ():
            self._join(self.disk_buffer.read(page))
        self._chunks[self._next_page] = self._entered
        self._entered = 0
        self._next_page = partition.stop % self.pages
        self._expire(int(self._chunks[self._next_page]))
        self._chunks[self._next_page] = 0

    def _next_partition(self) -> range:
        """Return the pages from the next one to the end of its partition, or to where a chunk began."""
        start = self._next_page
        stop = max(self.disk_buffer.partition(start).stop, 1)
        began = np.flatnonzero(self._chunks[start + 1 : stop])
        return range(start, start + 1 + int(began[0]) if len(began) else stop)

    def _join(self, page: Page) -> None:
        """Output r joined with H for each tuple r of the page, in portions that fit into memory."""
        self.probed += len(page.keys)
        cursor = START
        while cursor[0] < len(page.keys):
            slots, rows, cursor = self._probe(page, cursor)
            self._output_matches(page, slots, rows)
            self._matched[slots] = True
            self._update_cache(page, rows)

    def _probe(self, page: Page, cursor: Cursor) -> tuple[np.ndarray, np.ndarray, Cursor]:
        """Find waiting tuples and the row of the page that each matches, from the cursor on."""
        found, cursor = self.waiting.table.probe(page.keys, cursor, self._found_slots, self._found_rows)
        return *self._confirmed(page, self._found_slots[:found], self._found_rows[:found]), cursor

    def _output_matches(self, page: Page, slots: np.ndarray, rows: np.ndarray) -> None:
        """Output waiting tuples, each with a row of the page."""
        self._output.joined(self.waiting.rows, slots, self._output_rows(page), rows)

    def _expire(self, count: int) -> None:
        """Lines 3 to 6: dequeue the oldest chunk T and remove its tuples from H."""
        slots = self.waiting.queue.oldest(count)
        self._output.unmatched(self.waiting.rows, slots[~self._matched[slots]])
        self._matched[slots] = False
        self.waiting.delete(slots)

    def _chunk_size(self) -> int:
        """Return w, the tuples that this iteration reads at most; k chunks fill H."""
        return self.waiting.slots // self.k

    def _enough_room(self) -> bool:
        return True

    @classmethod
    def _needs(cls, relation: Relation, master: pa.Schema, shares: Shares, partitions: int) -> Needs:  # noqa: ARG003 - as in the base
        """Add for each waiting tuple whether it has matched, and for each page the size of its chunk."""
        chunks = 8 * max(1, relation.most_pages)
        least = cls._least_waiting(max(1, partitions))
        return replace(cls.needs, least_waiting=least, extra_per_waiting=1, extra_fixed=chunks)

    @classmethod
    def _least_waiting(cls, k: int) -> int:
        """Return the least h_S: one tuple per chunk."""
        return k

    def _update_cache(self, page: Page, matched: np.ndarray) -> None:
        """Do nothing: MESHJOIN has no cache."""
