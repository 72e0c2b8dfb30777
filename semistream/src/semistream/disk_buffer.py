"""The disk buffer: the one page of R, of d tuples, that is in memory (HYBRIDJOIN 2011, section 4.1).

The papers read R in partitions, and their sizes decide how often the disk has to seek. Here a partition is a run of
pages that follow each other on disk: they come into the buffer one after the other, after a single seek. So a join
chooses the size of its partitions while it runs, and its memory does not depend on that size.
"""

from collections.abc import Sequence

import numpy as np
from semistream.relation.base import Page, Relation

__all__ = ["DiskBuffer"]

_MOST_SINGLE_ROWS = 4096  # more would take a slow disk too long for a join with a deadline
_BESIDE_ROW = 56  # bytes for a single row's position, its place in the file and its tuple


class DiskBuffer:
    """Memory for the largest page of R and its keys, or for single rows.

    Args:
        relation: R.
        columns: what the join needs of a single row.
        partition_pages: pages of a partition.

    Attributes:
        from_key: whether a partition starts at the page of the looked-up key, and not at a multiple of its size. Then
            partitions overlap, and each read serves fewer tuples; the papers' measurements have it so.
        single_rows: how many single rows are read at once: as many as fit into it, if they are as large as those of the
            largest page.
    """

    def __init__(self, relation: Relation, columns: Sequence[str], partition_pages: int = 1) -> None:
        self._relation = relation
        self._columns = columns
        self.nbytes = self.size(relation)
        self.partition_pages = partition_pages
        self.from_key = False
        self.single_rows = min(max(1, self.nbytes // (self.row_size(relation) + _BESIDE_ROW)), _MOST_SINGLE_ROWS)

    @staticmethod
    def size(relation: Relation) -> int:
        """Return the bytes that the largest page and its keys take."""
        return relation.page_bytes + 8 * relation.page_rows

    @staticmethod
    def row_size(relation: Relation) -> int:
        """Return the bytes that a row of the largest page and its key take, on average."""
        return -(-relation.page_bytes // max(1, min(relation.page_rows, relation.row_count))) + 8

    @property
    def partition_pages(self) -> int:
        """Pages of a partition; the last partition of R can have fewer."""
        return self._partition_pages

    @partition_pages.setter
    def partition_pages(self, pages: int) -> None:
        if pages < 1:
            raise ValueError(f"partition_pages must be at least 1, got {pages}: use 1 to read page by page")
        self._partition_pages = pages

    @property
    def partitions(self) -> int:
        """Count the partitions of R, the first of which starts at its first page."""
        return -(-self._relation.pages // self._partition_pages)

    @property
    def most_partitions(self) -> int:
        """Count the partitions of R when it has grown as large as it can."""
        return -(-self._relation.most_pages // self._partition_pages)

    def partition(self, page: int) -> range:
        """Return the pages of the partition that is read for a page."""
        first = page if self.from_key else page - page % self._partition_pages
        return range(first, min(first + self._partition_pages, self._relation.pages))

    def read(self, page: int) -> Page:
        """Read a page into the buffer."""
        return self._relation.read_page(page)

    def read_rows(self, positions: np.ndarray, keys: np.ndarray) -> Page:
        """Read single rows into the buffer: those, from the first on, whose strings fit."""
        return self._relation.read_rows(positions, keys, self._columns, self.nbytes)
