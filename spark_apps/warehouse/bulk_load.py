"""Load Arrow rows into a table of the warehouse: many in one command, none twice."""

from __future__ import annotations

import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING

from foundation.connections import BulkConnection, connect, login
from foundation.errors import LoadError
from spark_apps.warehouse.bulk_rows import MOST_BYTES, bulk_rows, parameter_types

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from foundation.connections import Connection

# Commands of MariaDB's protocol that pymysql has no method for; its version is pinned.
_PREPARE, _CLOSE, _BULK_EXECUTE = 0x16, 0x19, 0xFA
_TYPES_FOLLOW = 128
_DUPLICATE, _KEY = 1062, "'PRIMARY'"


@contextmanager
def loading() -> Iterator[Connection]:
    """Connect as the loader. The connection locks rows, not the gaps between them: tasks do not wait for each other."""
    with connect(login("loader"), bulk=True) as connection:
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION tx_isolation = 'READ-COMMITTED'")
        yield connection


def load(connection: Connection, table: str, rows: pa.Table, most_bytes: int = MOST_BYTES) -> int:
    """Insert rows, skip those whose primary key is in the table already, and return how many were new.

    INSERT IGNORE changes a value that does not fit its column and skips a row that breaks a constraint, with no more
    than a warning. Here every warning is an error, except the one that the primary key exists.

    Args:
        connection: one that was opened with `bulk=True`.
        table: where the rows go.
        rows: the rows.
        most_bytes: limit for the rows in a command, unless one row has more.

    Raises:
        LoadError: the table does not take a row as it is.
    """
    if not isinstance(connection, BulkConnection):
        raise TypeError(f"connection must be opened by connect(..., bulk=True), got {type(connection).__name__}")
    added = 0
    if rows.num_rows:
        names = ", ".join(f"`{name}`" for name in rows.column_names)
        placeholders = ", ".join("?" for _ in rows.column_names)
        insert = f"INSERT IGNORE INTO `{table}` ({names}) VALUES ({placeholders})"  # noqa: S608  # our own names
        with _prepared(connection, insert) as statement:
            head = struct.pack("<IH", statement, _TYPES_FOLLOW) + parameter_types(rows.schema)
            for batch in rows.to_batches():
                for count, written in bulk_rows(batch, most_bytes):
                    connection._execute_command(_BULK_EXECUTE, head + written)  # type: ignore[attr-defined]  # noqa: SLF001
                    new = connection._read_query_result()  # type: ignore[attr-defined]  # noqa: SLF001
                    _check_warnings(connection, table, count, new)
                    added += new
    return added


@contextmanager
def _prepared(connection: Connection, text: str) -> Iterator[int]:
    """Prepare a statement that has parameters and no result, and yield its number."""
    connection._execute_command(_PREPARE, text)  # type: ignore[attr-defined]  # noqa: SLF001
    answer = connection._read_packet()  # type: ignore[no-untyped-call]  # noqa: SLF001
    _, statement, _, parameters = struct.unpack("<BIHH", answer.read(9))
    for _ in range(parameters + 1):  # a packet for each, and one that ends them
        connection._read_packet()  # type: ignore[no-untyped-call]  # noqa: SLF001
    try:
        yield statement
    finally:
        if connection.open:
            connection._execute_command(_CLOSE, struct.pack("<I", statement))  # type: ignore[attr-defined]  # noqa: SLF001  # the server does not answer it


def _check_warnings(connection: Connection, table: str, rows: int, added: int) -> None:
    """Raise LoadError unless each warning is about a row that was not added because its primary key exists."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@warning_count")
        ((warnings,),) = cursor.fetchall()
        if warnings:
            cursor.execute("SHOW WARNINGS")
            kept = cursor.fetchall()
            others = [text for _, code, text in kept if code != _DUPLICATE or not text.endswith(_KEY)]
            if others or not len(kept) == warnings == rows - added:
                warning = others[0] if others else f"{warnings} warnings, of which it keeps {len(kept)}"
                raise LoadError(
                    f"table {table!r} must take rows as they are: of {rows}, {added} were new, and the server warns: "
                    f"{warning}",
                    "Correct the column that the warning names, or the data.",
                )
