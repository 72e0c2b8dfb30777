"""INLJ, the index nested loop join (MESHJOIN 2007, section 2; HYBRIDJOIN 2011, section 3)."""

from typing import ClassVar

import numpy as np
from semistream.joins.hybridjoin import HybridJoin
from semistream.memory_split import Needs
from semistream.relation.base import Page

__all__ = ["IndexNestedLoopJoin"]


class IndexNestedLoopJoin(HybridJoin):
    """Reads one stream tuple, looks up its page, reads the page, joins, and continues with the next tuple.

    This is HYBRIDJOIN with room for a single tuple in H_S; HYBRIDJOIN 2011, theorem 2, compares the two. MESHJOIN 2007
    gives INLJ a buffer pool. This join has none, as in HYBRIDJOIN 2011 and CHYBRIDJOIN 2017: the rest of the memory is
    unused. If keys of R repeat, it reads every page that can have the tuple's key.
    """

    paper_name: ClassVar[str] = "INLJ"
    needs: ClassVar[Needs] = Needs(least_waiting=1, most_waiting=1)
    partitioned: ClassVar[bool] = False
    unique_key: ClassVar[bool] = False

    def _disk_phase(self) -> None:
        if self.relation.unique:
            super()._disk_phase()
            return
        slot = self.waiting.queue.oldest(1)
        pages = self.relation.candidates(int(self.waiting.keys(slot)[0]))
        if not sum(self._output_matches(self.disk_buffer.read(page), slot) for page in pages):
            self._output.unmatched(self.waiting.rows, slot)
        self.waiting.delete(slot)

    def _output_matches(self, page: Page, slot: np.ndarray) -> int:
        """Output the tuple with each row of the page that has its key; return how many have."""
        self.probed += len(page.keys)
        rows = np.flatnonzero(page.keys == self.waiting.keys(slot))
        slots, rows = self._confirmed(page, np.repeat(slot, len(rows)), rows)
        self._output.joined(self.waiting.rows, slots, self._output_rows(page), rows)
        return len(rows)
