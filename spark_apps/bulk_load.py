"""Arrow rows into a table of the warehouse, many at once, each at most once."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyarrow import compute, csv
from pyarrow import types as arrow_types

from services.warehouse import connect, login

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from services.warehouse import Connection

_FORMAT = csv.WriteOptions(include_header=False, null_string="\\N", quoting_style="needed")
_READ = "CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' ENCLOSED BY '\"' ESCAPED BY '\\\\' LINES TERMINATED BY '\\n'"


@contextmanager
def loading() -> Iterator[Connection]:
    """Connect as the loader; rows are locked and not the gaps between them, so that tasks do not wait."""
    with connect(login("loader"), local_infile=True) as connection:
        with connection.cursor() as cursor:
            # The second is how many warnings the server keeps.
            cursor.execute("SET SESSION tx_isolation = 'READ-COMMITTED', max_error_count = 65535")
        yield connection


class LoadError(Exception):
    """The warehouse did not take rows as they are; the message has its first warning."""


def load(connection: Connection, table: str, rows: pa.Table) -> int:
    """Load rows by LOAD DATA, leave out those whose primary key is there already, and return how many were new.

    The file that LOAD DATA wants is in memory. LOAD DATA LOCAL bends a value that does not fit its column, leaves out a
    row that breaks a constraint, and only warns: any warning but that a row is there already is an error here.
    """
    if not rows.num_rows:
        return 0
    handle = os.memfd_create("rows")
    try:
        with os.fdopen(os.dup(handle), "wb") as file:
            csv.write_csv(_escaped(rows), file, _FORMAT)
        with connection.cursor() as cursor:
            names = ", ".join(f"`{name}`" for name in rows.column_names)
            cursor.execute(
                f"LOAD DATA LOCAL INFILE '/proc/self/fd/{handle}' IGNORE INTO TABLE `{table}` {_READ} ({names})"
            )
            added = cursor.rowcount
            cursor.execute("SELECT @@warning_count")
            ((warnings,),) = cursor.fetchall()
            if warnings:
                cursor.execute("SHOW WARNINGS")
                said = [text for _, code, text in cursor.fetchall() if code != _DUPLICATE or not text.endswith(_KEY)]
                if said or warnings != rows.num_rows - added:
                    first = said[0] if said else "nothing"
                    raise LoadError(
                        f"table {table!r}: {rows.num_rows} rows, {added} were new, and the server says: {first}"
                    )
    finally:
        os.close(handle)
    return int(added)


_DUPLICATE, _KEY = 1062, "'PRIMARY'"


def _escaped(rows: pa.Table) -> pa.Table:
    """Double backslashes in texts: LOAD DATA takes one as the beginning of an escape."""
    for place, field in enumerate(rows.schema):
        if arrow_types.is_string(field.type):
            rows = rows.set_column(place, field, compute.replace_substring(rows.column(place), "\\", "\\\\"))
    return rows
