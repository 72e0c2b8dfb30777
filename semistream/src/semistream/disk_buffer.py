"""The disk buffer: the one page of R that is in memory at a time, d tuples (000 section 4.1)."""

from semistream.relation.base import Page, Relation


class DiskBuffer:
    """Room for the largest page of R and its keys."""

    def __init__(self, relation: Relation) -> None:
        self._relation = relation
        self.nbytes = self.size(relation)

    @staticmethod
    def size(relation: Relation) -> int:
        """Say how many bytes a page and its keys take."""
        return relation.page_bytes + 8 * relation.page_rows

    def load(self, page: int) -> Page:
        """Read a page into the buffer."""
        return self._relation.read_page(page)
