"""The check accepts a good ranked copy and refuses a bad one with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_apps.master.ranking import build_ranking

if TYPE_CHECKING:
    from tests.spark_apps.conftest import Warehouse

# Great Expectations' imports warn of deprecated parts of its own libraries.
pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
PUBLISHED = 1500


def refusals(products: Warehouse, *damage: str) -> list[str]:
    """Build a ranked copy, damage the master table before or the copy after, and return what the check refuses."""
    products.run(*(statement for statement in damage if "by_rank" not in statement))
    from quality.master import check_ranking

    ranking = build_ranking(products.login, products.master)
    products.run(*(statement for statement in damage if "by_rank" in statement))
    return check_ranking(products.login, products.master, ranking, round(0.9 * PUBLISHED)).failures


def test_a_good_copy_passes(products: Warehouse) -> None:
    """A good copy passes, also if rows were deleted since the last ranking."""
    assert refusals(products, "DELETE FROM product WHERE product_id <= 20") == []


@pytest.mark.parametrize(
    ("damage", "expectation", "says"),
    [
        (["DELETE FROM product"], "row_count", "'min_value': 1350"),
        (["DELETE FROM product WHERE product_id > 700"], "row_count", "'min_value': 1350"),
        (["DELETE FROM product_by_rank_next WHERE access_rank = 7"], "row_count", "'max_value': 1500"),
        (
            [
                "ALTER TABLE product MODIFY price_cents INT NULL",
                "UPDATE product SET price_cents = NULL WHERE product_id = 5",
            ],
            "not_be_null",
            "price_cents",
        ),
        (["UPDATE product SET price_cents = 0 WHERE product_id = 5"], "between", "price_cents"),
        (
            [
                "ALTER TABLE product DROP PRIMARY KEY, MODIFY product_id BIGINT NULL",
                "UPDATE product SET product_id = NULL WHERE product_id = 5",
            ],
            "not_be_null",
            "product_id",
        ),
        (
            [
                "ALTER TABLE product_by_rank_next DROP KEY by_key",
                "UPDATE product_by_rank_next SET product_id = 3 WHERE product_id = 5",
            ],
            "be_unique",
            "product_id",
        ),
    ],
    ids=["empty", "half empty", "a missing row", "no price", "price 0", "no key", "a key twice"],
)
def test_a_bad_copy_is_refused_with_what_is_wrong(
    products: Warehouse, damage: list[str], expectation: str, says: str
) -> None:
    """The failures of a bad copy state the expectation and the column or number."""
    failures = refusals(products, *damage)
    assert any(expectation in failure and says in failure for failure in failures)
