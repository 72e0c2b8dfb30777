"""Rank master rows by estimate: build the ranked copy, a table clustered by rank, and swap it in.

Rows without an estimate follow in the order of the key, so their order does not change from one ranking to the next.
The next ranked copy is built beside the one in use, from one consistent view of the master table and without locking
it. RENAME TABLE then puts it into use: a reader sees either the old copy or the new one.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from foundation.connections import connect
from foundation.errors import AlreadyRunningError, SnapshotError
from spark_apps.master.changes import newest_position
from spark_apps.master.tables import RANK, Names, definitions, ranked_columns, ranked_table
from spark_apps.warehouse.statements import listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foundation.connections import Connection, Login
    from spark_apps.pipeline.definition import Master

BUILD_MEMORY = 128 << 20  # bytes that the server uses for sorting


@dataclass(frozen=True)
class Patience:
    """How long a run waits for others.

    Attributes:
        run_seconds: how long for another run that builds or publishes.
        reader_seconds: how long for readers that have a transaction open on the copy in use.
    """

    run_seconds: int = 600
    reader_seconds: int = 60


PATIENCE = Patience()


@dataclass(frozen=True)
class Ranking:
    """A ranked copy that was built and is not in use yet.

    Attributes:
        token: identifies the copy. It is the comment on the copy's table, which a rename keeps.
        position: in the change log; the copy has all changes up to it.
        least: a lower bound of the number of rows that the master table had while the copy was built.
        most: an upper bound of that number.
    """

    token: str
    position: int
    least: int
    most: int


def build_ranking(owner: Login, master: Master, patience: Patience = PATIENCE) -> Ranking:
    """Build the next ranked copy."""
    names = Names(master.table)
    columns = ranked_columns(master)
    token = uuid4().hex
    with one_at_a_time(owner, master, patience), connect(owner) as connection, connection.cursor() as cursor:
        position = newest_position(connection, master)
        types = definitions(connection, master)
        cursor.execute(f"DROP TABLE IF EXISTS `{names.next_by_rank}`")
        cursor.execute(f"{ranked_table(names.next_by_rank, master, types)} COMMENT '{token}'")
        cursor.execute("SET SESSION tx_isolation = 'READ-COMMITTED', sort_buffer_size = %s", (BUILD_MEMORY,))
        before = _count(connection, master.table)
        estimates = f"LEFT JOIN `{names.frequency}` AS f USING ({listed(master.key)})"
        cursor.execute(
            f"INSERT INTO `{names.next_by_rank}` ({RANK}, {listed(columns)}) "
            f"SELECT ROW_NUMBER() OVER (ORDER BY f.access_frequency DESC, {listed(master.key, 'r')}) - 1, "
            f"{listed(columns, 'r')} FROM `{master.table}` AS r {estimates}"
        )
        connection.commit()
        changed = newest_position(connection, master) - position
    return Ranking(token, position, max(before - changed, 0), before + changed)


@contextmanager
def one_at_a_time(owner: Login, master: Master, patience: Patience = PATIENCE) -> Iterator[None]:
    """Hold the lock for building and publishing; the server releases it when its holder is killed.

    Raises:
        AlreadyRunningError: another run holds the lock for longer than `run_seconds`.
    """
    with connect(owner) as connection, connection.cursor() as cursor:
        lock = (Names(master.table).by_rank, patience.run_seconds)
        cursor.execute("SELECT GET_LOCK(CONCAT(DATABASE(), '.', %s), %s)", lock)
        if cursor.fetchall() != ((1,),):
            raise AlreadyRunningError(
                f"another run still ranks or publishes `{master.table}` after {patience.run_seconds} s",
                "Wait until it ends, then run the pipeline's Dag refresh again.",
            )
        yield


def find_copy(owner: Login, master: Master, ranking: Ranking) -> str:
    """Return the name of the table that has a ranked copy: `<table>_by_rank_next`, or `<table>_by_rank` after the swap.

    Raises:
        SnapshotError: another run has replaced the copy.
    """
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
        "Run the pipeline's Dag refresh again.",
    )


def swap_in(owner: Login, master: Master, patience: Patience = PATIENCE) -> None:
    """Replace the ranked copy in use by the next one."""
    names = Names(master.table)
    old = f"{names.by_rank}_old"
    with connect(owner) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION lock_wait_timeout = %s", (patience.reader_seconds,))
        cursor.execute(f"DROP TABLE IF EXISTS `{old}`")
        cursor.execute(f"RENAME TABLE `{names.by_rank}` TO `{old}`, `{names.next_by_rank}` TO `{names.by_rank}`")
        cursor.execute(f"DROP TABLE `{old}`")


def _count(connection: Connection, table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*) FROM `{table}`")
        ((rows,),) = cursor.fetchall()
    return int(rows)
