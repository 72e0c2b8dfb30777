"""The order: master rows ranked by estimate, in a table clustered by rank that is swapped in as a whole.

Rows that the estimate does not know follow in the order of the master table's key, so they stay where they are from one
ranking to the next. The ranked copy is built beside the one in use, from one consistent view of the master table and
without locking it, and takes its place by RENAME TABLE: a reader sees the old one or the new one.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from foundation.connections import connect
from foundation.errors import SnapshotError
from spark_apps.master.changes import newest_position
from spark_apps.master.tables import RANK, Names, definitions, ranked_columns, ranked_table
from spark_apps.warehouse.statements import listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foundation.connections import Connection, Login
    from spark_apps.pipeline.definition import Master

BUILD_MEMORY = 128 << 20  # of the server, for sorting
LONGEST_WAIT_SECONDS = 60  # for readers that are in the middle of a transaction on the copy in use
LONGEST_TURN_SECONDS = 600  # of another run that builds or publishes


@dataclass(frozen=True)
class Ranking:
    """A ranked copy that was built and is not in use yet.

    Attributes:
        token: which copy it is; its table has it as a comment, also under another name.
        position: of the change log; all changes up to it are in the copy.
        least: rows that the master table had at least while the copy was made.
        most: rows that it had at most.
    """

    token: str
    position: int
    least: int
    most: int


def build_ranking(owner: Login, master: Master) -> Ranking:
    """Build the next ranked copy."""
    names = Names(master.table)
    columns = ranked_columns(master)
    token = uuid4().hex
    with one_at_a_time(owner, master), connect(owner) as connection, connection.cursor() as cursor:
        position = newest_position(connection, master)
        types = definitions(connection, master)
        cursor.execute(f"DROP TABLE IF EXISTS `{names.next_by_rank}`")
        cursor.execute(f"{ranked_table(names.next_by_rank, master, types)} COMMENT '{token}'")
        cursor.execute("SET SESSION tx_isolation = 'READ-COMMITTED', sort_buffer_size = %s", (BUILD_MEMORY,))
        before = _count(connection, master.table)
        known = f"LEFT JOIN `{names.frequency}` AS f USING ({listed(master.key)})"
        cursor.execute(
            f"INSERT INTO `{names.next_by_rank}` ({RANK}, {listed(columns)}) "
            f"SELECT ROW_NUMBER() OVER (ORDER BY f.access_frequency DESC, {listed(master.key, 'r')}) - 1, "
            f"{listed(columns, 'r')} FROM `{master.table}` AS r {known}"
        )
        connection.commit()
        changed = newest_position(connection, master) - position
    return Ranking(token, position, max(before - changed, 0), before + changed)


@contextmanager
def one_at_a_time(owner: Login, master: Master) -> Iterator[None]:
    """Keep other runs from building and publishing meanwhile; the server lets go when the holder is killed."""
    with connect(owner) as connection, connection.cursor() as cursor:
        lock = (Names(master.table).by_rank, LONGEST_TURN_SECONDS)
        cursor.execute("SELECT GET_LOCK(CONCAT(DATABASE(), '.', %s), %s)", lock)
        if cursor.fetchall() != ((1,),):
            raise SnapshotError(
                f"another run has been ranking or publishing `{master.table}` for {LONGEST_TURN_SECONDS} s",
                "When it has ended, run refresh_master_order again.",
            )
        yield


def find_copy(owner: Login, master: Master, ranking: Ranking) -> str:
    """Return the name of the table that a ranked copy is in: the next one, or, once swapped in, the one in use."""
    names = Names(master.table)
    with connect(owner) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables "
            "WHERE table_schema = DATABASE() AND table_name IN %s AND table_comment = %s",
            ((names.next_by_rank, names.by_rank), ranking.token),
        )
        for (table,) in cursor.fetchall():
            return str(table)
    raise SnapshotError(
        f"the ranked copy of `{master.table}` that was checked is gone: another run has replaced it",
        "Run refresh_master_order again.",
    )


def swap_in(owner: Login, master: Master) -> None:
    """Put the next ranked copy in the place of the one in use."""
    names = Names(master.table)
    old = f"{names.by_rank}_old"
    with connect(owner) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION lock_wait_timeout = %s", (LONGEST_WAIT_SECONDS,))
        cursor.execute(f"DROP TABLE IF EXISTS `{old}`")
        cursor.execute(f"RENAME TABLE `{names.by_rank}` TO `{old}`, `{names.next_by_rank}` TO `{names.by_rank}`")
        cursor.execute(f"DROP TABLE `{old}`")


def _count(connection: Connection, table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*) FROM `{table}`")
        ((rows,),) = cursor.fetchall()
    return int(rows)
