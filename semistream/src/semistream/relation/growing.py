"""R in memory that grows at its end while joins read it (CHYBRIDJOIN 2017, figure 9e)."""

from collections.abc import Sequence

import pyarrow as pa
from semistream import arrow
from semistream.keys import Fingerprint, fingerprint
from semistream.relation.memory import MemoryRelation

__all__ = ["GrowingRelation"]


class GrowingRelation(MemoryRelation):
    """A table to which rows are appended between two calls of the joins that read it.

    What a stream tuple meets: at least all rows that R had when the join read the tuple from the stream buffer. It may
    also meet rows that were appended while it waited. A tuple without a match in the former can come out unmatched
    although the latter have one. Tuples that a join reads after `append` meet the new rows: MESHJOIN kinds read the new
    pages in their cycle, the others find them by the index, and all forget which keys R lacked.

    Args:
        table: the rows at first.
        key: names of the key columns, which must have no nulls. If they are unique, they stay so.
        most_rows: the rows that R can grow to; joins reserve memory for its pages.
        page_rows: rows of a page.
        string_bytes: the mean length for which a page has room in each string or binary column.
        fingerprint: as in `MemoryRelation`.
    """

    def __init__(
        self,
        table: pa.Table,
        key: Sequence[str],
        most_rows: int,
        page_rows: int = 500,
        *,
        string_bytes: int = 32,
        fingerprint: Fingerprint = fingerprint,
    ) -> None:
        super().__init__(table, key, page_rows, fingerprint=fingerprint)
        self._most_rows = most_rows
        self._check_room(self.row_count)
        self._table = table
        self._version = 0
        self.page_bytes = max(self.page_bytes, page_rows * _row_bytes(table.schema, string_bytes))

    @property
    def most_pages(self) -> int:
        """Return the pages that R can grow to."""
        return -(-self._most_rows // self.page_rows)

    @property
    def version(self) -> int:
        """Count the calls of `append`."""
        return self._version

    def append(self, rows: pa.Table) -> None:
        """Add rows at the end of R; if that is an error, R stays as it was. The index of all of R is built again."""
        if not rows.schema.equals(self.schema):
            raise ValueError(
                f"rows must have the relation's schema {self.schema.names}, got {rows.schema.names}: "
                "select and cast their columns"
            )
        self._check_room(self.row_count + rows.num_rows)
        table = pa.concat_tables([self._table, rows])
        grown = MemoryRelation(table, self.key, self.page_rows, fingerprint=self.codec.fingerprint)
        if self.unique and not grown.unique:
            raise ValueError(
                f"rows must have keys that R lacks, because its key {list(self.key)} is unique, got a key again: "
                "leave such rows out"
            )
        if grown.page_bytes > self.page_bytes:
            raise ValueError(
                f"a page must fit into {self.page_bytes} bytes, which joins have reserved, with these rows one has "
                f"{grown.page_bytes}: make relation and joins again with a larger string_bytes"
            )
        self._table = table
        self._take_over(grown)
        self._version += 1

    def _check_room(self, rows: int) -> None:
        if rows > self._most_rows:
            raise ValueError(
                f"rows of the relation must be at most most_rows, {self._most_rows}, got {rows}: "
                "make the relation again with a larger most_rows"
            )


def _row_bytes(schema: pa.Schema, string_bytes: int) -> int:
    """Return the bytes of a row: each value, a byte for null or not, and two offsets of a string."""
    return sum(
        1 + (16 + string_bytes if arrow.is_variable_width(f.type) else arrow.fixed_width_dtype(f.type).itemsize)
        for f in schema
    )
