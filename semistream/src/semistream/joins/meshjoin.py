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
    """Scans R in a cycle and joins each page with a window of the stream; needs no index.

    A tuple leaves the window when the scan is back at the page that it met first: it has met all k pages of R. The
    window holds k chunks of w tuples. If R grows meanwhile, its new pages come in between, before page 0.
    """

    paper_name: ClassVar[str] = "MESHJOIN"
    unique_key: ClassVar[bool] = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self._matched = np.zeros(self.waiting.slots, dtype=np.bool_)
        most = max(1, self.relation.most_pages)
        self._chunks = np.zeros(most, dtype=np.int64)  # tuples that entered the window, by the page they met first
        self._next_page = 0
        self._entered = 0  # tuples that entered the window since the last iteration

    @property
    def k(self) -> int:
        """Count the pages that a tuple meets; R may grow."""
        return max(1, self.relation.pages)

    def memory_used(self) -> int:
        """Count the bytes of all parts, buffers at their full size."""
        return super().memory_used() + self._matched.nbytes + self._chunks.nbytes

    def _stream_phase(self) -> None:
        """Lines 2, 7 and 8: read w tuples of S, add them to H and enqueue them in Q."""
        while len(self.stream_buffer) and (room := min(self._chunk_size() - self._entered, self.waiting.room)) > 0:
            before = len(self.waiting)
            read = self._probe_front_stage(room)
            self._entered += len(self.waiting) - before
            if not read:
                return

    def _disk_phase(self) -> None:
        """Lines 2, 9, 10: read the next page of R and join it with H. Then expire the tuples that have met all of R."""
        if self.relation.pages:
            self._join(self.disk_buffer.read(self._next_page))
        self._chunks[self._next_page] = self._entered
        self._entered = 0
        self._next_page = (self._next_page + 1) % self.k
        self._expire(int(self._chunks[self._next_page]))

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
    def _needs(cls, relation: Relation, master: pa.Schema, shares: Shares) -> Needs:  # noqa: ARG003 - as in the base
        """Add for each waiting tuple whether it has matched, and the sizes of the k chunks."""
        k = max(1, relation.most_pages)
        return replace(cls.needs, least_waiting=cls._least_waiting(k), extra_per_waiting=1, extra_fixed=8 * k)

    @classmethod
    def _least_waiting(cls, k: int) -> int:
        """Return the least h_S: one tuple per chunk."""
        return k

    def _update_cache(self, page: Page, matched: np.ndarray) -> None:
        """Do nothing: MESHJOIN has no cache."""
