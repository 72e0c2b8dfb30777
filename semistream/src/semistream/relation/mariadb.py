"""R in MariaDB or MySQL: pages are ranges of the clustered key, and the index is the table's own."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from semistream import arrow
from semistream.relation.base import Page, Relation, check_keys

__all__ = ["Connection", "MariaDbRelation"]

Connection = Any  # a connection of pymysql, which is imported only where it is used
_REMEMBERED = 10.0  # seconds for which a join may take a key for absent without looking it up again
_GROWTH = 2  # a page can grow to this many times the size that the largest page had when the relation was opened


class MariaDbRelation(Relation):
    """Reads a table over one connection, and reconnects when it breaks.

    Opening a relation scans the table's keys once, in order, and keeps the first key of each page. Afterwards rows can
    be inserted, changed and deleted. If a page then no longer fits into its memory, reading it raises ValueError.

    A join remembers absent keys. It finds the row of such a key at most `remembered` seconds after it was inserted.

    Args:
        connect: opens a pymysql connection.
        table: the table's name.
        schema: the columns to read, with their Arrow types.
        key: the integer column by which the table is clustered.
        page_rows: rows of a page.
        remembered: seconds for which a join remembers an absent key.
        clock: returns the current time in seconds.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        table: str,
        schema: pa.Schema,
        key: str,
        page_rows: int = 500,
        *,
        remembered: float = _REMEMBERED,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if remembered <= 0:
            raise ValueError(f"remembered must be more than 0 seconds, got {remembered}: try {_REMEMBERED}")
        self._describe(schema, [key], page_rows)
        if not self.codec.exact:
            raise ValueError(f"key must be one integer column, got {schema.field(key)}: use a page file instead")
        self._remembered, self._clock = remembered, clock
        self._connect = connect
        self._connection: Connection = None
        self._columns = ", ".join(_quoted(name) for name in schema.names)
        self._table, self._key = _quoted(table), _quoted(key)
        self._measure_pages()

    @property
    def version(self) -> int:
        """Return a number that changes every `remembered` seconds: the table does not tell when rows come."""
        return int(self._clock() / self._remembered)

    def close(self) -> None:
        """Close the connection; the next read opens another one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _measure_pages(self) -> None:
        """Scan the table by key: find each page's first key, the largest page's size, and whether keys are unique."""
        strings = [name for name in self.schema.names if arrow.is_variable_width(self.schema.field(name).type)]
        lengths = " + ".join(f"COALESCE(LENGTH({_quoted(name)}), 0)" for name in strings) or "0"
        starts: list[int] = []
        self.row_count, self.unique, largest, size = 0, True, 0, 0
        last = None
        for key, length in self._stream(f"SELECT {self._key}, {lengths} FROM {self._table} ORDER BY {self._key}"):  # noqa: S608 - quoted
            if self.row_count % self.page_rows == 0:
                starts.append(key)
                size = 0
            size += length
            largest = max(largest, size)
            self.unique = self.unique and key != last
            last = key
            self.row_count += 1
        self._starts = np.array(starts, dtype=np.int64)
        row = sum(
            9 if arrow.is_variable_width(f.type) else arrow.fixed_width_dtype(f.type).itemsize + 1 for f in self.schema
        )
        self.page_bytes = _GROWTH * (largest + row * self.page_rows)

    def _read(self, page: int) -> tuple[Page, int]:
        above = [f"{self._key} >= %s"] if page else []
        below = [f"{self._key} < %s"] if page + 1 < self.pages else []
        limits = [int(start) for start in self._starts[page : page + 2]][0 if page else 1 :]
        where = " WHERE " + " AND ".join([*above, *below]) if above or below else ""
        rows = self._query(f"SELECT {self._columns} FROM {self._table}{where} ORDER BY {self._key}", limits)  # noqa: S608 - quoted
        columns = zip(*rows, strict=True) if rows else [()] * len(self.schema)
        arrays = [pa.array(column).cast(kind) for column, kind in zip(columns, self.schema.types, strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        if batch.nbytes > self.page_bytes:
            raise ValueError(
                f"page {page} of {self._table} must fit into {self.page_bytes} bytes, it has grown to {batch.nbytes}: "
                "open the relation again"
            )
        keys = check_keys(self.codec, batch, self.key)
        return Page(page * self.page_rows, keys, batch), batch.nbytes

    def _locate(self, keys: np.ndarray) -> np.ndarray:
        if not len(keys):
            return np.empty(0, dtype=np.int64)
        marks = ", ".join(["%s"] * len(keys))
        rows = self._query(f"SELECT {self._key} FROM {self._table} WHERE {self._key} IN ({marks})", keys.tolist())  # noqa: S608 - quoted
        known = np.isin(keys, np.array([key for (key,) in rows], dtype=np.int64))
        return np.where(known, np.maximum(np.searchsorted(self._starts, keys, side="right") - 1, 0), -1)

    def _candidates(self, key: int) -> list[int]:
        return [int(page) for page in self._locate(np.array([key])) if page >= 0]

    def _query(self, statement: str, values: Sequence[int]) -> list[tuple[Any, ...]]:
        """Run a statement; if the connection is broken, reconnect and retry it once."""
        import pymysql

        try:
            return self._rows(statement, values)
        except (pymysql.OperationalError, pymysql.InterfaceError):
            self._drop_connection()
            return self._rows(statement, values)

    def _rows(self, statement: str, values: Sequence[int]) -> list[tuple[Any, ...]]:
        with self._open().cursor() as cursor:
            cursor.execute(statement, values)
            return list(cursor.fetchall())

    def _stream(self, statement: str) -> Any:  # noqa: ANN401 - rows of a server-side cursor
        import pymysql.cursors

        with self._open().cursor(pymysql.cursors.SSCursor) as cursor:
            cursor.execute(statement)
            yield from cursor

    def _open(self) -> Connection:
        if self._connection is None:
            self._connection = self._connect()
            self._connection.autocommit(True)  # noqa: FBT003 - so that each read sees the current rows
        return self._connection

    def _drop_connection(self) -> None:
        """Close a broken connection without sending anything to the server."""
        if self._connection is not None:  # None if it could not be opened
            self._connection._force_close()  # noqa: SLF001 - pymysql has no public call for it
            self._connection = None


def _quoted(name: str) -> str:
    """Quote an identifier."""
    return "`" + name.replace("`", "``") + "`"
