"""The disk buffer: the one page of R, of d tuples, that is in memory (HYBRIDJOIN 2011, section 4.1)."""

from collections.abc import Sequence

import numpy as np
from semistream.relation.base import Page, Relation

__all__ = ["DiskBuffer"]

_BESIDE_ROW = 64  # bytes for a single row's key and position, its place in the file and its tuple


class DiskBuffer:
    """Memory for the largest page of R and its keys, or for single rows.

    Args:
        relation: R.
        columns: what the join needs of a row.

    Attributes:
        nbytes: its size.
        single_rows: how many single rows fit into it, if they are as large as those of the largest page.
    """

    def __init__(self, relation: Relation, columns: Sequence[str]) -> None:
        self._relation = relation
        self._columns = columns
        self.nbytes = self.size(relation)
        row = relation.page_bytes // max(1, min(relation.page_rows, relation.row_count)) + _BESIDE_ROW
        self.single_rows = max(1, self.nbytes // row)

    @staticmethod
    def size(relation: Relation) -> int:
        """Return the bytes that the largest page and its keys take."""
        return relation.page_bytes + 8 * relation.page_rows

    def read(self, page: int) -> Page:
        """Read a page into the buffer."""
        return self._relation.read_page(page)

    def read_rows(self, positions: np.ndarray, keys: np.ndarray) -> Page:
        """Read single rows into the buffer."""
        return self._relation.read_rows(positions, keys, self._columns)
