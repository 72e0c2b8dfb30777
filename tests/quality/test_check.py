"""A suite finds what is wrong with real rows, and names it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from foundation.connections import connect, login
from foundation.errors import QualityError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foundation.settings import Settings

# Great Expectations' imports warn of deprecated parts of its own libraries.
pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
INSERT = """INSERT INTO sales_enriched
    (source, kafka_partition, kafka_offset, event_id, product_key, store_id, quantity, price_cents, sold_at)
    VALUES (60000, 0, %s, UUID(), 1, 1, %s, 100, '2026-01-01')"""


@pytest.fixture
def rows(migrated: Settings) -> Iterator[Settings]:
    """A good row and one of quantity 0, gone afterwards."""
    with connect(login("loader", migrated)) as connection, connection.cursor() as cursor:
        cursor.executemany(INSERT, [(0, 1), (1, 0)])
    yield migrated
    with connect(login("root", migrated)) as connection, connection.cursor() as cursor:
        cursor.execute("DELETE FROM sales_enriched WHERE source = 60000")


def test_what_is_not_as_expected_is_named_and_the_rest_is_met(rows: Settings) -> None:
    """Quantity 0 breaks one expectation."""
    from quality.check import check_suite

    outcome = check_suite("sales_enriched", login("checker", rows))
    (failure,) = outcome.failures
    assert "expect_column_values_to_be_between" in failure
    assert "quantity" in failure
    assert len(outcome.lines) > 1


def test_an_unknown_suite_is_named_with_those_that_are_there(migrated: Settings) -> None:
    """So that a typing error is seen at once."""
    from quality.check import check_suite

    with pytest.raises(QualityError, match=r"there is no quality/suites/sale\.json\. Name one of: .*sales_enriched"):
        check_suite("sale", login("checker", migrated))
