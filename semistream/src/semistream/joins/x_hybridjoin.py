"""X-HYBRIDJOIN (X-HYBRIDJOIN 2013, section 4.2, algorithm 1)."""

from typing import Any, ClassVar

from semistream.joins.hybridjoin import HybridJoin
from semistream.memory_split import Needs
from semistream.relation.base import Page

__all__ = ["XHybridJoin"]


class XHybridJoin(HybridJoin):
    """HYBRIDJOIN with a disk buffer of two parts: the first pages of R stay in it, and one page is swapped.

    R should be in the order of access frequency. Every iteration also joins the non-swappable part with H.
    """

    paper_name: ClassVar[str] = "X-HYBRIDJOIN"
    needs: ClassVar[Needs] = Needs(pinned_pages=True)

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        pages = range(min(self.split.pinned_pages, self.relation.pages))
        self._pinned = [_copy(self.disk_buffer.read(page)) for page in pages]

    def memory_used(self) -> int:
        """Count the bytes of all parts, the non-swappable part at its full size."""
        return super().memory_used() + self.split.pinned_pages * self.disk_buffer.nbytes

    def _disk_phase(self) -> None:
        """Lines 8 to 14: join the non-swappable part with H. Lines 15 to 23: join the page of the oldest tuple."""
        for page in self._pinned:
            self._join(page)
        if self.pending:
            super()._disk_phase()


def _copy(page: Page) -> Page:
    """Copy a page out of the disk buffer."""
    rows = page.rows.take(list(range(page.rows.num_rows)))
    return Page(page.first, page.keys.copy(), rows)
