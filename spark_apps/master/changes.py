"""Row changes of a master table, incrementally and completely.

Triggers log the key of every row that a transaction inserts, updates or deletes, in the same transaction: what is
committed is logged, what is rolled back is not. A number that is drawn at the insert (AUTO_INCREMENT, a clock) says
nothing of the order of commits: a reader that went on behind the highest one would never see a transaction that had
drawn a lower one and committed later. So a change gets its position only after its commit: a reader first numbers the
changes that it can see and that have no number, one reader at a time. A change that becomes visible later gets a higher
position, always. No clock is asked.

A reader gets rows as they are now, not as they were: a change may be told twice, none is ever missed.
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
PRESENT = "__present"
# For one transaction: a statement sees what is committed when it begins, and locks no gaps that writers insert into.
LOCK_ROWS_ONLY = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"


class Changes(NamedTuple):
    """What changed behind a position.

    Attributes:
        position: where to go on reading.
        rows: the changed rows that are there, key and columns, as they are now.
        deleted: the keys that are no longer there.
    """

    position: int
    rows: pa.Table
    deleted: pa.Table


def newest_position(connection: Connection, master: Master) -> int:
    """Number what was committed until now and return the highest position: a query that begins later sees it all."""
    while True:
        position, numbered = _number(connection, master)
        if numbered < AT_ONCE:
            return position


def read_changes(connection: Connection, master: Master, after: int) -> Changes:
    """Read what changed behind a position: a snapshot's, or that of the read before.

    Args:
        connection: of an account that may number changes, such as the loader; kept open by who reads often. It must
            not be in the middle of a transaction.
        master: the master table.
        after: what was read already.

    Raises:
        ForgottenChangesError: the log does not reach back that far.
    """
    change = Names(master.table).change
    newest = newest_position(connection, master)
    _check_log_reaches(connection, master, after)
    columns = [name for name in master.columns if name not in master.key]
    # Keys are the same when their bytes are: the stream joins by bytes, whatever the column's collation says.
    exact = ", ".join(f"BINARY `{name}` AS `_{name}`" for name in master.key)
    same = " AND ".join(f"r.`{name}` = c.`{name}` AND BINARY r.`{name}` = c.`_{name}`" for name in master.key)
    found = read_table(
        connection,
        f"SELECT {listed(master.key, 'c')}, {listed(columns, 'r')}, r.`{master.key[0]}` IS NOT NULL AS {PRESENT} "
        f"FROM (SELECT DISTINCT {listed(master.key)}, {exact} FROM `{change}` "
        "WHERE position > %s AND position <= %s) AS c "
        f"LEFT JOIN `{master.table}` AS r ON {same} "
        f"WHERE {' AND '.join(f'c.`{name}` IS NOT NULL' for name in master.key)}",
        (after, newest),
    )
    connection.commit()  # the next read is to see what is new by then
    present = found[PRESENT].cast("bool")
    rows = found.drop_columns(PRESENT)
    return Changes(newest, rows.filter(present), rows.filter(compute.invert(present)).select(master.key))


def prune_changes(connection: Connection, master: Master, until: int) -> None:
    """Remove the changes up to a position that every reader is past."""
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
    """Give changes that are committed and have no position one; return the highest, and how many were given.

    The row of master_changes lets one in at a time, until the commit: whoever comes next sees these positions.
    """
    change = Names(master.table).change
    with connection.cursor() as cursor:
        cursor.execute(LOCK_ROWS_ONLY)
        position, _ = _state(connection, master, "FOR UPDATE")
        cursor.execute(f"SELECT change_id FROM `{change}` WHERE position IS NULL ORDER BY change_id LIMIT {AT_ONCE}")
        waiting = [row[0] for row in cursor.fetchall()]
        if waiting:
            cursor.execute("SET @position = %s", (position,))
            cursor.execute(
                f"UPDATE `{change}` SET position = (@position := @position + 1) WHERE change_id IN %s", (waiting,)
            )
            position += len(waiting)
            cursor.execute("UPDATE master_changes SET position = %s WHERE master = %s", (position, master.table))
    connection.commit()
    return position, len(waiting)


def _check_log_reaches(connection: Connection, master: Master, after: int) -> None:
    """Raise unless it does; what is read next, in the same transaction, is read from the log as it is now."""
    position, forgot = _state(connection, master)
    if not forgot <= after <= position:
        connection.rollback()
        raise ForgottenChangesError(
            f"changes of `{master.table}` behind position {after} are not all in the log, it reaches from behind "
            f"{forgot} to {position}",
            "Take the newest snapshot and read on from its position.",
        )


def _state(connection: Connection, master: Master, lock: str = "") -> tuple[int, int]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT position, forgot FROM master_changes WHERE master = %s {lock}", (master.table,))
        rows = cursor.fetchall()
    if not rows:
        raise TableError(f"changes of `{master.table}` are not logged yet", "The Dag prepare_warehouse begins it.")
    return rows[0]
