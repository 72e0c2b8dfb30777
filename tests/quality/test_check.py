"""A check of real rows reports exactly the expectations that are not met."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from foundation.connections import connect, login

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foundation.settings import Settings

# Importing Great Expectations warns about deprecated parts of its own libraries.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
INSERT = """INSERT INTO sales_enriched
    (source, kafka_partition, kafka_offset, event_id, product_key, store_id, quantity, price_cents, sold_at)
    VALUES (60000, 0, %s, UUID(), 1, 1, %s, 100, '2026-01-01')"""


@pytest.fixture
def rows(migrated: Settings) -> Iterator[Settings]:
    """Insert a good row and one with quantity 0; remove both afterwards."""
    with connect(login("loader", migrated)) as connection, connection.cursor() as cursor:
        cursor.executemany(INSERT, [(0, 1), (1, 0)])
    yield migrated
    with connect(login("root", migrated)) as connection, connection.cursor() as cursor:
        cursor.execute("DELETE FROM sales_enriched WHERE source = 60000")


@pytest.mark.integration
def test_only_the_broken_expectation_is_a_failure(rows: Settings) -> None:
    """A row with quantity 0 fails exactly one expectation."""
    from quality.enriched import check_enriched

    outcome = check_enriched(login("checker", rows), "sales_enriched")
    (failure,) = outcome.failures
    assert "expect_column_values_to_be_between" in failure
    assert "quantity" in failure
    assert len(outcome.lines) > 1


@pytest.mark.integration
def test_a_table_without_a_suite_must_have_each_position_once(migrated: Settings) -> None:
    """Rows of a pipeline without a suite are checked, too: a position that is there twice is a failure."""
    from quality.enriched import check_enriched

    outcomes = []
    with connect(login("owner", migrated)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE rough_enriched (source INT, kafka_partition INT, kafka_offset INT)")
        try:
            for offset in (5, 6, 5):
                cursor.execute("INSERT INTO rough_enriched VALUES (1, 0, %s)", (offset,))
                connection.commit()
                outcomes.append(check_enriched(login("checker", migrated), "rough_enriched").failures)
        finally:
            cursor.execute("DROP TABLE rough_enriched")
    once, both_once, twice = outcomes
    assert (once, both_once) == ([], [])
    assert "expect_compound_columns_to_be_unique" in "".join(twice)
