"""Read the row changes of a master table from its change log: new ones only, and none is missed.

Triggers log the key of every row that a transaction inserts, updates or deletes, in the same transaction: a commit
keeps the log entry, a rollback removes it.

Neither AUTO_INCREMENT numbers nor clocks follow the order of commits. A reader that continued after the highest number
would miss a transaction that drew a lower number and committed later. So a change gets its position only after its
commit: a reader first numbers the visible changes that have none, one reader at a time. A change that becomes visible
later always gets a higher position.

A reader gets the rows as they are now: it can get a change twice, and never misses one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyarrow import compute

from foundation.errors import ForgottenChangesError, TableError
from spark_apps.master.tables import Names
from spark_apps.warehouse.result_rows import read_table
from spark_apps.warehouse.statements import listed

if TYPE_CHECKING:
    import pyarrow as pa

    from foundation.connections import Connection
    from spark_apps.pipeline.definition import Master

AT_ONCE = 10_000
MOST_COUNTED = 100_000  # changes: to count more takes too long for something that is looked at every second
PRESENT = "__present"
# For the next transaction: a statement sees what is committed when it begins, and locks no gaps: writers can insert.
LOCK_ROWS_ONLY = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"


class Changes(NamedTuple):
    """The changes after a position.

    Attributes:
        position: the position after which the next read continues.
        rows: the changed rows that still exist, key and columns, as they are now.
        deleted: the keys of the changed rows that no longer exist.
    """

    position: int
    rows: pa.Table
    deleted: pa.Table


def newest_position(connection: Connection, master: Master) -> int:
    """Assign a position to every committed change that has none, and return the highest position.

    A query that begins after this call sees all changes up to that position.
    """
    while True:
        position, numbered = _number(connection, master)
        if numbered < AT_ONCE:
            return position


def waiting_changes(connection: Connection, master: Master, after: int) -> int:
    """Return how many committed changes a snapshot at this position lacks, and count at most MOST_COUNTED of them."""
    change = Names(master.table).change
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT COUNT(*) FROM (SELECT 1 FROM `{change}` WHERE position IS NULL OR position > %s LIMIT %s) AS few",
            (after, MOST_COUNTED),
        )
        ((waiting,),) = cursor.fetchall()
    return int(waiting)


def read_changes(connection: Connection, master: Master, after: int) -> Changes:
    """Read the changes after a position.

    Args:
        connection: of an account that is allowed to update the change log, for example the loader. It must not have an
            open transaction.
        master: the master table.
        after: the position of a snapshot or of the previous read.

    Raises:
        ForgottenChangesError: the log does not reach back to the position.
    """
    change = Names(master.table).change
    newest = newest_position(connection, master)
    _check_log_reaches(connection, master, after)
    columns = [name for name in master.columns if name not in master.key]
    # The stream joins by bytes, so keys are equal if their bytes are, whatever the column's collation is.
    exact = ", ".join(f"BINARY `{name}` AS `_{name}`" for name in master.key)
    same_key = " AND ".join(f"r.`{name}` = c.`{name}` AND BINARY r.`{name}` = c.`_{name}`" for name in master.key)
    changed = read_table(
        connection,
        f"SELECT {listed(master.key, 'c')}, {listed(columns, 'r')}, r.`{master.key[0]}` IS NOT NULL AS {PRESENT} "
        f"FROM (SELECT DISTINCT {listed(master.key)}, {exact} FROM `{change}` "
        "WHERE position > %s AND position <= %s) AS c "
        f"LEFT JOIN `{master.table}` AS r ON {same_key} "
        f"WHERE {' AND '.join(f'c.`{name}` IS NOT NULL' for name in master.key)}",
        (after, newest),
    )
    connection.commit()  # so that the next read sees newer commits
    present = changed[PRESENT].cast("bool")
    rows = changed.drop_columns(PRESENT)
    return Changes(newest, rows.filter(present), rows.filter(compute.invert(present)).select(master.key))


def prune_changes(connection: Connection, master: Master, until: int) -> None:
    """Delete the changes up to a position from the log. Every reader must be past it."""
    change = Names(master.table).change
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE master_changes SET forgot = GREATEST(forgot, %s) WHERE master = %s", (until, master.table)
        )
        removed = AT_ONCE
        while removed == AT_ONCE:
            connection.commit()
            cursor.execute(LOCK_ROWS_ONLY)
            removed = cursor.execute(f"DELETE FROM `{change}` WHERE position <= %s LIMIT {AT_ONCE}", (until,))
    connection.commit()


def _number(connection: Connection, master: Master) -> tuple[int, int]:
    """Assign positions to at most AT_ONCE committed changes that have none; return the highest, and how many these are.

    The row of master_changes is the lock: one reader numbers at a time, until its commit. The next one sees the result.
    """
    change = Names(master.table).change
    with connection.cursor() as cursor:
        cursor.execute(LOCK_ROWS_ONLY)
        position, _ = _state(connection, master, "FOR UPDATE")
        cursor.execute(f"SELECT change_id FROM `{change}` WHERE position IS NULL ORDER BY change_id LIMIT {AT_ONCE}")
        new = [row[0] for row in cursor.fetchall()]
        if new:
            cursor.execute("SET @position = %s", (position,))
            cursor.execute(
                f"UPDATE `{change}` SET position = (@position := @position + 1) WHERE change_id IN %s", (new,)
            )
            position += len(new)
            cursor.execute("UPDATE master_changes SET position = %s WHERE master = %s", (position, master.table))
    connection.commit()
    return position, len(new)


def _check_log_reaches(connection: Connection, master: Master, after: int) -> None:
    """Raise ForgottenChangesError unless the log has all changes after a position.

    It leaves the transaction open, so that the next query sees the same state of the log.
    """
    position, forgot = _state(connection, master)
    if not forgot <= after <= position:
        connection.rollback()
        raise ForgottenChangesError(
            f"the change log of `{master.table}` must have all changes after position {after}, got those after "
            f"{forgot} to {position}",
            "Take the newest snapshot and read on from its position.",
        )


def _state(connection: Connection, master: Master, lock: str = "") -> tuple[int, int]:
    """Return the highest position, and the position up to which changes were pruned."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT position, forgot FROM master_changes WHERE master = %s {lock}", (master.table,))
        rows = cursor.fetchall()
    if not rows:
        raise TableError(f"changes of `{master.table}` are not logged yet", "Run the pipeline's Dag prepare.")
    return rows[0]
