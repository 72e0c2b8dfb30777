"""Create the tables that Freshet keeps beside a master table, for any table that a pipeline's file names.

<table>_frequency   the estimate: how often the stream asks for a key
<table>_by_rank     the ranked copy: the rows in the order of the estimate, clustered by rank, with a unique key
<table>_change      the change log, filled by triggers (spark_apps/master/changes.py)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from foundation.connections import connect
from foundation.errors import TableError
from spark_apps.warehouse.statements import listed

if TYPE_CHECKING:
    from foundation.connections import Connection, Login
    from spark_apps.pipeline.definition import Master

RANK = "access_rank"
COLUMNS = """
    SELECT column_name, CONCAT(column_type, COALESCE(CONCAT(' COLLATE ', collation_name), ''),
                               IF(is_nullable = 'YES', ' NULL', ' NOT NULL'))
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = %s
"""
INDEXES = """
    SELECT index_name FROM information_schema.statistics
    WHERE table_schema = DATABASE() AND table_name = %(table)s AND column_name IN %(key)s AND seq_in_index <= %(count)s
    GROUP BY index_name HAVING COUNT(*) = %(count)s
"""


@dataclass(frozen=True)
class Names:
    """The names of the tables beside a master table."""

    table: str

    @property
    def frequency(self) -> str:
        """The name of the table with the estimate."""
        return f"{self.table}_frequency"

    @property
    def by_rank(self) -> str:
        """The name of the ranked copy in use."""
        return f"{self.table}_by_rank"

    @property
    def next_by_rank(self) -> str:
        """The name of the next ranked copy."""
        return f"{self.table}_by_rank_next"

    @property
    def change(self) -> str:
        """The name of the change log."""
        return f"{self.table}_change"


def ranked_columns(master: Master) -> list[str]:
    """Return the columns of the ranked copy: the master data's key, columns and `changed`."""
    return list(dict.fromkeys([*master.key, *master.columns, master.changed]))


def definitions(connection: Connection, master: Master) -> dict[str, str]:
    """Return the types of the ranked columns, as CREATE TABLE needs them."""
    with connection.cursor() as cursor:
        cursor.execute(COLUMNS, (master.table,))
        present = dict(cursor.fetchall())
    if not present:
        raise TableError(
            f"master.table: there is no table `{master.table}`", "Create it, or correct the pipeline's file."
        )
    missing = [name for name in ranked_columns(master) if name not in present]
    if missing:
        raise TableError(
            f"master.key, columns and changed must be columns of `{master.table}`, got {', '.join(missing)}; it has "
            f"{', '.join(present)}",
            "Correct the pipeline's file.",
        )
    return {name: present[name] for name in ranked_columns(master)}


def prepare(owner: Login, master: Master) -> None:
    """Create the missing tables and triggers beside the master table. From then on every change is logged."""
    names = Names(master.table)
    with connect(owner) as connection, connection.cursor() as cursor:
        types = definitions(connection, master)
        _check_index(connection, master)
        _check_key(connection, master)
        keys = ", ".join(f"`{name}` {types[name]}" for name in master.key)
        any_keys = keys.replace(" NOT NULL", " NULL")  # so that logging makes no write to the master table fail
        cursor.execute(
            f"CREATE TABLE IF NOT EXISTS `{names.frequency}` ({keys}, "
            "access_frequency DOUBLE NOT NULL COMMENT 'estimated share of events that name this key', "
            f"UNIQUE KEY ({listed(master.key)}))"
        )
        cursor.execute(
            f"CREATE TABLE IF NOT EXISTS `{names.change}` (change_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, "
            f"position BIGINT UNSIGNED NULL, {any_keys}, PRIMARY KEY (change_id), KEY (position))"
        )
        cursor.execute("INSERT IGNORE INTO master_changes (master) VALUES (%s)", (master.table,))
        for statement in _triggers(master):
            cursor.execute(statement)
        cursor.execute(ranked_table(names.by_rank, master, types, "IF NOT EXISTS"))
        cursor.execute(f"GRANT SELECT ON `{names.by_rank}` TO loader@'%'")
        cursor.execute(f"GRANT SELECT ON `{master.table}` TO loader@'%'")
        cursor.execute(f"GRANT SELECT, INSERT, DELETE ON `{names.frequency}` TO loader@'%'")
        cursor.execute(f"GRANT SELECT, UPDATE ON `{names.change}` TO loader@'%'")


def _check_index(connection: Connection, master: Master) -> None:
    """Refuse a key without an index: storing an estimate would read the whole table for each key."""
    with connection.cursor() as cursor:
        if not cursor.execute(INDEXES, {"table": master.table, "key": master.key, "count": len(master.key)}):
            raise TableError(
                f"master.key: `{master.table}` must have an index that begins with {master.key}, but has none",
                f"Add one: ALTER TABLE `{master.table}` ADD INDEX ({listed(master.key)}).",
            )


def _check_key(connection: Connection, master: Master) -> None:
    """Refuse a key other than the one that the tables beside the master table were made for."""
    with connection.cursor() as cursor:
        cursor.execute(COLUMNS, (Names(master.table).frequency,))
        made_for = {name for name, _ in cursor.fetchall()} - {"access_frequency"}
    if made_for and made_for != set(master.key):
        raise TableError(
            f"master.key must be {sorted(made_for)}, as in other pipelines with the table `{master.table}`, got "
            f"{master.key}",
            "Correct the key, or name another table.",
        )


def ranked_table(name: str, master: Master, types: dict[str, str], condition: str = "") -> str:
    """Return the statement that creates a ranked copy. Ranks are 0, 1, 2, ..., so a page is a range of ranks."""
    columns = ", ".join(f"`{column}` {kind}" for column, kind in types.items())
    return (
        f"CREATE TABLE {condition} `{name}` ({RANK} INT UNSIGNED NOT NULL, {columns}, "
        f"PRIMARY KEY ({RANK}), UNIQUE KEY by_key ({listed(master.key)}))"
    )


def _triggers(master: Master) -> list[str]:
    """Return the statements that create the triggers.

    They log the key of each written row; if an update changes the key, the old one and the new one. Triggers run with
    the rights of the account that created them: writers need no rights on the log.
    """
    change, keys = Names(master.table).change, listed(master.key)
    log_new = f"INSERT INTO `{change}` ({keys}) VALUES ({listed(master.key, 'NEW')})"
    log_old = f"INSERT INTO `{change}` ({keys}) VALUES ({listed(master.key, 'OLD')})"
    same_key = " AND ".join(f"BINARY OLD.`{name}` <=> BINARY NEW.`{name}`" for name in master.key)
    bodies = {
        "INSERT": log_new,
        "DELETE": log_old,
        "UPDATE": f"BEGIN {log_new}; IF NOT ({same_key}) THEN {log_old}; END IF; END",
    }
    return [
        f"CREATE TRIGGER IF NOT EXISTS `{change}_{event.lower()}` AFTER {event} ON `{master.table}` FOR EACH ROW {body}"
        for event, body in bodies.items()
    ]
