"""Check a ranked copy before it is published: the expectations of every ranked copy, and the suite of its table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quality.check import check_table, read_suite
from spark_apps.master.tables import Names

if TYPE_CHECKING:
    from foundation.connections import Login
    from quality.check import Expectation, Outcome
    from spark_apps.master.ranking import Ranking
    from spark_apps.pipeline.definition import Master


def check_ranking(checker: Login, master: Master, ranking: Ranking, least_rows: int) -> Outcome:
    """Check the ranked copy, the master rows in the order of frequency, before it is published.

    Args:
        checker: the account that reads the copy, with its address.
        master: the master table; its ranked copy must also meet `quality/suites/<table>.json`, if that file exists.
        ranking: what is known of the copy; it must have at least `least` and at most `most` rows.
        least_rows: the copy must have at least this many rows, and at least one.
    """
    expected = [*_general(master, ranking, least_rows), *read_suite(master.table)]
    return check_table(Names(master.table).next_by_rank, expected, checker)


def _general(master: Master, ranking: Ranking, least_rows: int) -> list[Expectation]:
    unique = (
        {"type": "expect_column_values_to_be_unique", "kwargs": {"column": master.key[0]}}
        if len(master.key) == 1
        else {"type": "expect_compound_columns_to_be_unique", "kwargs": {"column_list": master.key}}
    )
    as_many = {"min_value": ranking.least, "max_value": ranking.most}
    return [
        {"type": "expect_table_row_count_to_be_between", "kwargs": {"min_value": max(1, least_rows)}},
        {"type": "expect_table_row_count_to_be_between", "kwargs": as_many},
        *({"type": "expect_column_values_to_not_be_null", "kwargs": {"column": name}} for name in master.key),
        unique,
    ]
