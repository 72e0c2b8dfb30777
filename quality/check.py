"""Check a table of the warehouse against what is expected of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import great_expectations as gx
from great_expectations.data_context.types.base import ProgressBarsConfig
from sqlalchemy import URL

from foundation.connections import connect
from foundation.settings import ROOT

if TYPE_CHECKING:
    from great_expectations.core import ExpectationValidationResult

    from foundation.connections import Login

Expectation = dict[str, Any]  # type and kwargs, as Great Expectations names them
NEWEST = 100_000  # a check reads at most this many rows of each Kafka partition: the newest
SUITES = ROOT / "quality" / "suites"


@dataclass(frozen=True)
class Outcome:
    """The result of a check: one line for each expectation, and again the lines of expectations that are not met."""

    lines: list[str]
    failures: list[str]


def read_suite(table: str) -> list[Expectation]:
    """Read the expectations of `quality/suites/<table>.json`; none if there is no such file."""
    file = SUITES / f"{table}.json"
    return list(json.loads(file.read_text())["expectations"]) if file.is_file() else []


def check_table(table: str, expectations: list[Expectation], checker: Login) -> Outcome:
    """Check a table of the warehouse against these expectations."""
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    address = URL.create(
        "mysql+pymysql", checker.user, checker.password, checker.host, checker.port, checker.database
    ).render_as_string(hide_password=False)
    source = context.data_sources.add_sql("warehouse", connection_string=address)
    closed = _closed_set(table, checker)
    asset = (
        source.add_table_asset(table, table_name=table)
        if closed is None
        else source.add_query_asset(table, query=f"SELECT * FROM {table} WHERE {closed}")  # noqa: S608
    )
    batch = asset.add_batch_definition_whole_table("all").get_batch()
    result = batch.validate(gx.ExpectationSuite(name=table, expectations=expectations))
    lines = [_describe(each) for each in result.results]
    failures = [line for line, each in zip(lines, result.results, strict=True) if not each.success]
    return Outcome(lines, failures)


def _closed_set(table: str, checker: Login) -> str | None:
    """Return the SQL condition for the newest rows of each Kafka partition, or None for a table without kafka_offset.

    A check runs several queries. The condition excludes rows that arrive between them, so that all see the same rows.
    """
    newest = f"SELECT source, kafka_partition, MAX(kafka_offset) FROM {table} GROUP BY source, kafka_partition"  # noqa: S608
    with connect(checker) as connection, connection.cursor() as cursor:
        cursor.execute(f"SHOW COLUMNS FROM {table} LIKE 'kafka_offset'")
        if not cursor.fetchall():
            return None
        cursor.execute(newest)
        found = cursor.fetchall()
    ranges = [
        f"source = {source} AND kafka_partition = {partition} AND kafka_offset BETWEEN {last - NEWEST + 1} AND {last}"
        for source, partition, last in found
    ]
    return " OR ".join(f"({one})" for one in ranges) or "FALSE"


def _describe(each: ExpectationValidationResult) -> str:
    expected = each.expectation_config
    assert expected is not None  # noqa: S101  # it came from the suite
    kwargs = {name: value for name, value in expected.kwargs.items() if name != "batch_id"}
    verdict = "met" if each.success else f"NOT met ({each.result or each.exception_info})"
    return f"{expected.type} {kwargs}: {verdict}"
