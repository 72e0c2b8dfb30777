"""Arrow rows into a table of the warehouse, many at once, each at most once."""

from __future__ import annotations

import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING

from foundation.connections import BulkConnection, connect, login
from foundation.errors import LoadError
from spark_apps.warehouse.bulk_rows import bulk_rows, parameter_types

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
    """Connect as the loader; rows are locked and not the gaps between them, so that tasks do not wait."""
    with connect(login("loader"), bulk=True) as connection:
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION tx_isolation = 'READ-COMMITTED'")
        yield connection


def load(connection: Connection, table: str, rows: pa.Table) -> int:
    """Insert rows, leave out those whose primary key is there already, and return how many were new.

    The connection is one for `bulk`. INSERT IGNORE bends a value that does not fit its column, leaves out a row that
    breaks a constraint, and only warns: any warning but that a row is there already is an error here.
    """
    if not isinstance(connection, BulkConnection):
        raise TypeError(f"connection must be one that was opened for bulk, got {type(connection)}: connect(bulk=True)")
    added = 0
    if rows.num_rows:
        names = ", ".join(f"`{name}`" for name in rows.column_names)
        asked = ", ".join("?" for _ in rows.column_names)
        insert = f"INSERT IGNORE INTO `{table}` ({names}) VALUES ({asked})"  # noqa: S608  # our own names
        with _prepared(connection, insert) as statement:
            head = struct.pack("<IH", statement, _TYPES_FOLLOW) + parameter_types(rows.schema)
            for batch in rows.to_batches():
                for count, written in bulk_rows(batch):
                    connection._execute_command(_BULK_EXECUTE, head + written)  # type: ignore[attr-defined]  # noqa: SLF001
                    new = connection._read_query_result()  # type: ignore[attr-defined]  # noqa: SLF001
                    _check_warnings(connection, table, count, new)
                    added += new
    return added


@contextmanager
def _prepared(connection: Connection, text: str) -> Iterator[int]:
    """Prepare a statement that has parameters and no result, and give its number."""
    connection._execute_command(_PREPARE, text)  # type: ignore[attr-defined]  # noqa: SLF001
    answer = connection._read_packet()  # type: ignore[no-untyped-call]  # noqa: SLF001
    _, statement, _, parameters = struct.unpack("<BIHH", answer.read(9))
    for _ in range(parameters + 1):  # a packet that describes each, and one that ends them
        connection._read_packet()  # type: ignore[no-untyped-call]  # noqa: SLF001
    try:
        yield statement
    finally:
        if connection.open:
            connection._execute_command(_CLOSE, struct.pack("<I", statement))  # type: ignore[attr-defined]  # noqa: SLF001  # has no answer


def _check_warnings(connection: Connection, table: str, rows: int, added: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@warning_count")
        ((warnings,),) = cursor.fetchall()
        if warnings:
            cursor.execute("SHOW WARNINGS")
            kept = cursor.fetchall()
            said = [text for _, code, text in kept if code != _DUPLICATE or not text.endswith(_KEY)]
            if said or not len(kept) == warnings == rows - added:
                first = said[0] if said else f"{warnings} warnings, of which it keeps {len(kept)}"
                raise LoadError(
                    f"table {table!r}: {rows} rows, {added} were new, and the server says: {first}",
                    "Correct the column that it names, or the data.",
                )
