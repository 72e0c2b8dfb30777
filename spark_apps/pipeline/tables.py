"""Create and check a pipeline's own tables in the warehouse, and the analysts' view.

Every event that has landed is in exactly one of the tables enriched, unmatched, rejected and shed. Its position is the
primary key. The bytes of shed events are in segments (spark_apps/enriching/shedding.py).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pymysql
from pyarrow import types as arrow_types

from foundation.connections import ANSWER_SECONDS, connect
from foundation.errors import TableError
from spark_apps.pipeline.dags import dag_of
from spark_apps.pipeline.definition import POSITION
from spark_apps.pipeline.fields import kind_of
from spark_apps.warehouse.result_rows import read_table
from spark_apps.warehouse.statements import listed

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

    from foundation.connections import Login
    from spark_apps.pipeline.definition import Pipeline

_NAME, _OF_THE_FACT = re.compile(r"[a-z]\w*"), r"e.`\g<0>`"
_POSITION_COLUMNS = """
    source SMALLINT UNSIGNED NOT NULL,
    kafka_partition SMALLINT UNSIGNED NOT NULL,
    kafka_offset BIGINT UNSIGNED NOT NULL,
"""


def create_tables(owner: Login, pipeline: Pipeline) -> None:
    """Create the missing tables and grant the loader's rights on them; create or replace the analysts' view."""
    try:
        _create_tables(owner, pipeline)
    except pymysql.MySQLError as error:
        raise TableError(
            f"pipeline {pipeline.name!r}: the warehouse refuses its tables or its view: {error.args[-1]}",
            "Correct what the warehouse names. The pipeline's name must not be an SQL keyword or another table's name.",
        ) from error


def _create_tables(owner: Login, pipeline: Pipeline) -> None:
    with connect(owner) as connection, connection.cursor() as cursor:
        for table, columns in _definitions(cursor, pipeline).items():
            body = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
            cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {table} ({_POSITION_COLUMNS} {body}, PRIMARY KEY ({', '.join(POSITION)}))"
            )
            cursor.execute(f"GRANT SELECT, INSERT ON {table} TO loader@'%'")
        for kind in ("unmatched", "rejected", "shed"):
            cursor.execute(f"GRANT DELETE ON {pipeline.name}_{kind} TO loader@'%'")
        cursor.execute(f"GRANT SELECT ON {pipeline.master.table} TO loader@'%'")
        cursor.execute(_view(cursor, pipeline))


def check_tables(loader: Login, pipeline: Pipeline) -> str:
    """Check that every table has the columns that follow from the pipeline's file.

    Returns:
        The marker: a column of `master.columns` that is NOT NULL. Where it is null after the join, nothing matched.

    Raises:
        TableError: a table or a column is missing or has another type, or no column of `master.columns` is NOT NULL.
    """
    prepare = dag_of("prepare", pipeline.name)
    with connect(loader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
        for table, columns in _definitions(cursor, pipeline).items():
            present = _columns(cursor, table)
            shown = f"pipeline {pipeline.name!r}: table {table!r}"
            if not present:
                raise TableError(f"{shown} does not exist", f"Run the Dag {prepare}, which creates it.")
            if wrong := [name for name, kind in columns.items() if _plain(present.get(name, "")) != _plain(kind)]:
                needed = ", ".join(f"{name} {_plain(columns[name])}" for name in wrong)
                got = ", ".join(f"{name} {_plain(present.get(name, 'missing'))}" for name in wrong)
                raise TableError(
                    f"{shown} must have {needed}, got {got}",
                    "If it was made for an older version of the pipeline's file, alter it by hand. Or rename it "
                    f"and run the Dag {prepare}, which creates a new one.",
                )
        return _never_null(cursor, pipeline)


def _never_null(cursor: Cursor, pipeline: Pipeline) -> str:
    cursor.execute(
        "SELECT column_name FROM information_schema.columns "
        "WHERE table_schema = DATABASE() AND table_name = %s AND is_nullable = 'NO'",
        (pipeline.master.table,),
    )
    never_null = {name for (name,) in cursor.fetchall()}
    marker = next((name for name in pipeline.master.columns if name in never_null), None)
    if marker is None:
        raise TableError(
            f"pipeline {pipeline.name!r}: one of master.columns must be NOT NULL in {pipeline.master.table!r}, to "
            f"tell a match from no match, got {pipeline.master.columns}",
            "Add such a column to master.columns.",
        )
    return marker


def _definitions(cursor: Cursor, pipeline: Pipeline) -> dict[str, dict[str, str]]:
    """Return the column types of each of the pipeline's tables, without the columns of the position."""
    master = _master_columns(cursor, pipeline)
    fields = {name: kind_of(field).sql for name, field in pipeline.source.fields.items()}
    known = {**fields, **{name: master[name] for name in pipeline.master.columns}}
    return {
        f"{pipeline.name}_enriched": {name: known[name] for name in pipeline.enriched.columns},
        f"{pipeline.name}_unmatched": fields,
        f"{pipeline.name}_rejected": {"reason": "VARCHAR(200) NOT NULL", "event": "LONGBLOB"},
        f"{pipeline.name}_shed": {"segment": "BIGINT UNSIGNED NOT NULL"},
    }


def _master_columns(cursor: Cursor, pipeline: Pipeline) -> dict[str, str]:
    """Check the master table's columns that the pipeline uses, and return the types of all its columns."""
    table = pipeline.master.table
    present = _columns(cursor, table)
    used = [*pipeline.master.key, *pipeline.master.columns]
    shown = f"pipeline {pipeline.name!r}: master table {table!r}"
    if missing := [name for name in used if name not in present]:
        problem = f"has no column {', '.join(missing)}" if present else "does not exist"
        raise TableError(f"{shown} {problem}", "Correct the section [master].")
    as_read = read_table(cursor.connection, f"SELECT {listed(used)} FROM `{table}` LIMIT 0").schema  # noqa: S608
    if binary := [f"{name} {present[name]}" for name in used if arrow_types.is_binary(as_read.field(name).type)]:
        raise TableError(
            f"{shown} has bytes in {', '.join(binary)}, which JSON cannot carry",
            "Leave such columns out of [master]: the view has them. Or name a column with HEX() of them.",
        )
    by = pipeline.enriched.described_by
    cursor.execute(
        "SELECT 1 FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = %s "
        "GROUP BY index_name HAVING SUM(non_unique) = 0 AND GROUP_CONCAT(column_name) = %s",
        (table, by),
    )
    if not cursor.fetchall():
        raise TableError(
            f"{shown}: enriched.described_by {by!r} must have a PRIMARY or UNIQUE key of its own, otherwise the view "
            "could show an event twice",
            f"Name another column, or ALTER TABLE {table} ADD UNIQUE ({by}).",
        )
    return present


def _plain(kind: str) -> str:
    """Return a column's type without NOT NULL and the display width of integers, on which no value depends."""
    return re.sub(r"(?<=int)\(\d+\)", "", re.sub(r" not null.*", "", kind.lower())).strip()


def _columns(cursor: Cursor, table: str) -> dict[str, str]:
    cursor.execute(
        "SELECT column_name, column_type FROM information_schema.columns "
        "WHERE table_schema = DATABASE() AND table_name = %s ORDER BY ordinal_position",
        (table,),
    )
    return dict(cursor.fetchall())


def _view(cursor: Cursor, pipeline: Pipeline) -> str:
    """Return the statement that creates the view: facts, columns computed from them, other columns of the master row.

    Facts are narrow: names and the like stay in the master table, and the view joins them. A fact whose master row is
    deleted stays in the view, with nulls for that row's columns.
    """
    facts = pipeline.enriched.columns
    taken = {*facts, *pipeline.enriched.computed, pipeline.master.changed}
    described = [f"m.`{name}`" for name in _columns(cursor, pipeline.master.table) if name not in taken]
    computed = [
        f"{_NAME.sub(_OF_THE_FACT, expression)} AS `{name}`" for name, expression in pipeline.enriched.computed.items()
    ]
    columns = ", ".join([*(f"e.`{name}`" for name in facts), *computed, *described])
    by = pipeline.enriched.described_by
    return (
        f"CREATE OR REPLACE SQL SECURITY INVOKER VIEW {pipeline.name} AS SELECT {columns} "  # noqa: S608  # identifiers
        f"FROM {pipeline.name}_enriched AS e LEFT JOIN {pipeline.master.table} AS m ON m.`{by}` = e.`{by}`"
    )
