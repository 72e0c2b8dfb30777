"""X-HYBRIDJOIN (X-HYBRIDJOIN 2013, section 4.2, algorithm 1)."""

from bisect import bisect_right
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from semistream.joins.hybridjoin import HybridJoin
from semistream.memory_split import Needs
from semistream.relation.base import Page

__all__ = ["XHybridJoin"]


class XHybridJoin(HybridJoin):
    """HYBRIDJOIN with a disk buffer of two parts: the first rows of R stay in it, and one partition is swapped.

    R should be in the order of access frequency. Every iteration also joins the non-swappable part with H. Its size is
    free (X-HYBRIDJOIN 2013, section 6): it can be a part of a page, or several pages.
    """

    paper_name: ClassVar[str] = "X-HYBRIDJOIN"
    needs: ClassVar[Needs] = Needs(kept_rows=True)

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self._kept = self._first_rows(self.split.kept_bytes)

    def memory_used(self) -> int:
        """Count the bytes of all parts, the non-swappable part at its full size."""
        return super().memory_used() + self.split.kept_bytes

    def _disk_phase(self) -> None:
        """Lines 8 to 14: join the non-swappable part with H. Lines 15 to 23: the partition of the oldest tuple."""
        for page in self._kept:
            self._join(page)
        if self.pending:
            super()._disk_phase()

    def _first_rows(self, room: int) -> list[Page]:
        """Copy the first rows of R out of the disk buffer, as many as fit into `room` bytes."""
        kept = []
        for number in range(self.relation.pages):
            page = self.disk_buffer.read(number)
            fitting = bisect_right(range(1, len(page.keys) + 1), room, key=lambda rows: _bytes(_copy(page, rows)))
            if fitting:
                kept.append(_copy(page, fitting))
                room -= _bytes(kept[-1])
            if fitting < len(page.keys):
                break
        return kept


def _copy(page: Page, rows: int) -> Page:
    """Copy the first rows of a page out of the disk buffer."""
    return Page(page.first, page.keys[:rows].copy(), page.rows.take(pa.array(np.arange(rows))))


def _bytes(page: Page) -> int:
    return int(page.rows.nbytes) + page.keys.nbytes
