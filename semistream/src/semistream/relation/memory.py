"""R in memory, for tests and small tables."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from semistream.keys import Fingerprint, fingerprint
from semistream.relation.base import IndexedRelation, Page, check_keys, is_unique
from semistream.relation.key_index import KeyIndex

__all__ = ["MemoryRelation"]


class MemoryRelation(IndexedRelation):
    """A table cut into pages of consecutive rows.

    Args:
        table: the rows.
        key: names of the key columns, which must have no nulls.
        page_rows: rows of a page.
        fingerprint: hashes keys that are not one integer; joins output the same rows with any function.
    """

    def __init__(
        self, table: pa.Table, key: Sequence[str], page_rows: int = 500, *, fingerprint: Fingerprint = fingerprint
    ) -> None:
        self._describe(table.schema, key, page_rows, fingerprint)
        self.reads_rows = True
        self.row_count = table.num_rows
        batches = table.combine_chunks().to_batches()
        self._rows = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
        self._keys = check_keys(self.codec, self._rows, self.key)
        self._index = KeyIndex.build(self._keys)
        keys_only = self._rows.select(self.key)
        self.unique = is_unique(self.codec, self._index, lambda positions: keys_only.take(pa.array(positions)))
        self._sizes = [self._rows.slice(p * page_rows, page_rows).nbytes for p in range(self.pages)]
        self.page_bytes = max(self._sizes, default=0)

    def _take_over(self, grown: "MemoryRelation") -> None:
        """Have the rows of another relation of the same kind."""
        self.row_count, self._rows, self._keys = grown.row_count, grown._rows, grown._keys  # noqa: SLF001
        self._index, self._sizes = grown._index, grown._sizes  # noqa: SLF001

    def _read(self, page: int) -> tuple[Page, int]:
        first = page * self.page_rows
        rows = self._rows.slice(first, self.page_rows)
        return Page(first, self._keys[first : first + self.page_rows], rows), self._sizes[page]

    def _read_rows(self, positions: np.ndarray, columns: Sequence[str]) -> pa.RecordBatch:
        return self._rows.select(columns).take(pa.array(positions))
