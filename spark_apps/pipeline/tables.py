"""A pipeline's own tables in the warehouse, made from its file, and the analysts' view.

Every event is in exactly one of enriched, unmatched, rejected and shed, under its position in the stream, which is the
primary key. Those that are shed wait in files of the shed store (spark_apps/enriching/shedding.py).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pymysql
from pyarrow import types as arrow_types

from foundation.connections import ANSWER_SECONDS, connect
from foundation.errors import TableError
from spark_apps.pipeline.definition import POSITION
from spark_apps.pipeline.fields import KINDS
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
    """Make the pipeline's tables that are missing, with the loader's rights on them, and the analysts' view anew."""
    try:
        _create_tables(owner, pipeline)
    except pymysql.MySQLError as error:
        raise TableError(
            f"pipeline {pipeline.name!r}: the warehouse refuses its tables or its view: {error.args[-1]}",
            "Correct what that names: the pipeline's name, if it is a word of SQL or another table's name.",
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
    """Check that every table has the columns that the pipeline's file says.

    Returns:
        A column that events get from the master data and that is never null there: where it is, nothing matched.

    Raises:
        TableError: a table or a column is missing or of another type, or every one of the columns may be null.
    """
    with connect(loader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
        for table, columns in _definitions(cursor, pipeline).items():
            present = _columns(cursor, table)
            wrong = [name for name, kind in columns.items() if _plain(present.get(name, "")) != _plain(kind)]
            if wrong:
                asked = ", ".join(f"{name} {_plain(columns[name])}" for name in wrong)
                lack = f"must have {asked}, has not" if present else "is not there"
                raise TableError(
                    f"pipeline {pipeline.name!r}: table {table!r} {lack}",
                    "The Dag prepare_warehouse makes tables; one "
                    "that was made for an older version of the pipeline's file must be altered or renamed by hand.",
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
            f"pipeline {pipeline.name!r}: one of master.columns {pipeline.master.columns} must be NOT NULL in "
            f"{pipeline.master.table!r}, to tell a match from none",
            "Add such a column.",
        )
    return marker


def _definitions(cursor: Cursor, pipeline: Pipeline) -> dict[str, dict[str, str]]:
    """Return the pipeline's tables, each with its columns and their types."""
    master = _master_columns(cursor, pipeline)
    fields = {name: KINDS[kind].sql for name, kind in pipeline.source.fields.items()}
    known = {**fields, **{name: master[name] for name in pipeline.master.columns}}
    return {
        f"{pipeline.name}_enriched": {name: known[name] for name in pipeline.enriched.columns},
        f"{pipeline.name}_unmatched": fields,
        f"{pipeline.name}_rejected": {"reason": "VARCHAR(200) NOT NULL", "event": "LONGBLOB"},
        f"{pipeline.name}_shed": {"segment": "BIGINT UNSIGNED NOT NULL"},
    }


def _master_columns(cursor: Cursor, pipeline: Pipeline) -> dict[str, str]:
    """Return the master table's columns and their types, after a check of those that the pipeline uses."""
    table = pipeline.master.table
    there = _columns(cursor, table)
    used = [*pipeline.master.key, *pipeline.master.columns]
    where = f"pipeline {pipeline.name!r}: master table {table!r}"
    if missing := [name for name in used if name not in there]:
        lack = f"lacks {', '.join(missing)}" if there else "is not there"
        raise TableError(f"{where} {lack}", "Correct [master].")
    as_read = read_table(cursor.connection, f"SELECT {listed(used)} FROM `{table}` LIMIT 0").schema  # noqa: S608
    if binary := [f"{name} {there[name]}" for name in used if arrow_types.is_binary(as_read.field(name).type)]:
        raise TableError(
            f"{where} has bytes in {', '.join(binary)}, which JSON cannot carry. "
            "Leave such columns out of [master]: the view has them all the same",
            "Or name a column that has HEX() of it.",
        )
    by = pipeline.enriched.described_by
    cursor.execute(
        "SELECT 1 FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = %s "
        "GROUP BY index_name HAVING SUM(non_unique) = 0 AND GROUP_CONCAT(column_name) = %s",
        (table, by),
    )
    if not cursor.fetchall():
        raise TableError(
            f"{where}: enriched.described_by {by!r} must have a PRIMARY or UNIQUE key of its own, or the view could "
            f"show an event twice",
            f"Name another column, or ALTER TABLE {table} ADD UNIQUE ({by}).",
        )
    return there


def _plain(kind: str) -> str:
    """Return a column's type as far as values depend on it: without NOT NULL and the display width of numbers."""
    return re.sub(r"(?<=int)\(\d+\)", "", re.sub(r" not null.*", "", kind.lower())).strip()


def _columns(cursor: Cursor, table: str) -> dict[str, str]:
    cursor.execute(
        "SELECT column_name, column_type FROM information_schema.columns "
        "WHERE table_schema = DATABASE() AND table_name = %s ORDER BY ordinal_position",
        (table,),
    )
    return dict(cursor.fetchall())


def _view(cursor: Cursor, pipeline: Pipeline) -> str:
    """Return the view that has the facts, what is computed from them, and the master row's other columns.

    Facts are narrow: names and the like stay in the master table until somebody asks for them. A fact whose master row
    has been deleted since stays, without them.
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
