"""The disk buffer: the one page of R, of d tuples, that is in memory (HYBRIDJOIN 2011, section 4.1)."""

from semistream.relation.base import Page, Relation

__all__ = ["DiskBuffer"]


class DiskBuffer:
    """Memory for the largest page of R and its keys."""

    def __init__(self, relation: Relation) -> None:
        self._relation = relation
        self.nbytes = self.size(relation)

    @staticmethod
    def size(relation: Relation) -> int:
        """Return the bytes that the largest page and its keys take."""
        return relation.page_bytes + 8 * relation.page_rows

    def read(self, page: int) -> Page:
        """Read a page into the buffer."""
        return self._relation.read_page(page)
