"""Check the enriched rows of a pipeline: what every pipeline's rows must fulfil, and the suite of its table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quality.check import check_table, read_suite
from spark_apps.pipeline.definition import POSITION

if TYPE_CHECKING:
    from foundation.connections import Login
    from quality.check import Expectation, Outcome

# A position without nulls is no expectation: the table's primary key has none.
GENERAL: list[Expectation] = [
    {"type": "expect_compound_columns_to_be_unique", "kwargs": {"column_list": list(POSITION)}}
]


def check_enriched(checker: Login, table: str) -> Outcome:
    """Check a table of enriched rows; it must also meet `quality/suites/<table>.json`, if that file exists."""
    return check_table(table, [*GENERAL, *read_suite(table)], checker)
