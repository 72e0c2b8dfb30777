"""A check of real rows reports exactly the expectations that are not met."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from foundation.connections import Login, connect, login
from foundation.errors import QualityError

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
    from quality.check import check_suite

    outcome = check_suite("sales_enriched", login("checker", rows))
    (failure,) = outcome.failures
    assert "expect_column_values_to_be_between" in failure
    assert "quantity" in failure
    assert len(outcome.lines) > 1


def test_an_unknown_suite_is_named_with_those_that_exist() -> None:
    """The error for an unknown suite lists the suites that exist, without a connection to a server."""
    from quality.check import check_suite

    nowhere = Login("127.0.0.1", 9, "checker", "", "freshet")
    with pytest.raises(QualityError, match=r"suite must be one of product, sales_enriched, got 'sale'\. .*sale\.json"):
        check_suite("sale", nowhere)
