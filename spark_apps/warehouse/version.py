"""Is the warehouse of this version? A program of ours must not run half blind on older tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foundation.connections import ANSWER_SECONDS, connect
from foundation.errors import TableError

if TYPE_CHECKING:
    import pymysql

    from foundation.connections import Login

# A column that the newest migration of each shared table made.
NEWEST = {
    "batch_counters": "latency_seconds",
    "counter_rollup": "counts",
    "shed_segment": "replayed_by",
    "wish": "asked_at",
    "program_start": "metrics_port",
    "quality_check": "summary",
}
# The server's answers while a table is missing. Before the first migration the loader has no rights at all.
NO_TABLE = (1044, 1142, 1146)


def tables_are_missing(error: pymysql.MySQLError) -> bool:
    """Return whether a statement failed because no pipeline's Dag prepare has ever run."""
    return bool(error.args) and error.args[0] in NO_TABLE


def check_version(loader: Login) -> None:
    """Raise TableError if a migration is missing."""
    with connect(loader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns "
            "WHERE table_schema = DATABASE() AND table_name IN %s",
            (tuple(NEWEST),),
        )
        present = set(cursor.fetchall())
    missing = [f"{table}.{column}" for table, column in NEWEST.items() if (table, column) not in present]
    if missing:
        raise TableError(
            f"the warehouse's tables are of an older version: {', '.join(missing)} does not exist",
            "Run the pipeline's Dag prepare.",
        )
