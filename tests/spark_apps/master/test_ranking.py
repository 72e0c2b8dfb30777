"""The ranked copy has the order of the estimate, and readers always see a whole copy."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pyarrow as pa
import pymysql
import pytest

from foundation.connections import connect
from foundation.errors import TableError
from spark_apps.master.frequency import Estimate, store_estimate
from spark_apps.master.ranking import build_ranking, swap_in
from spark_apps.master.tables import prepare
from tests.spark_apps.conftest import ROWS

if TYPE_CHECKING:
    from tests.spark_apps.conftest import Warehouse

pytestmark = pytest.mark.integration


def estimated(products: Warehouse, weights: dict[int, float]) -> None:
    """Store an estimate."""
    table = pa.table({"product_id": list(weights), "weight": list(weights.values())})
    store_estimate(products.login, products.master, Estimate(1, sum(weights.values()), table))


def order(products: Warehouse, table: str = "product_by_rank") -> list[object]:
    """Return the keys in the order of ranks."""
    return [key for (key,) in products.ask(f"SELECT product_id FROM {table} ORDER BY access_rank")]


def test_rows_follow_the_estimate_and_the_others_keep_their_order_behind(products: Warehouse) -> None:
    """Ranks 0, 1, 2, ... follow the estimate; rows with equal estimates are in the order of the key."""
    estimated(products, {9: 0.2, 5: 0.7, 700: 0.2})
    build_ranking(products.login, products.master)
    swap_in(products.login, products.master)
    known = [5, 9, 700]
    assert order(products) == known + [key for key in range(1, ROWS + 1) if key not in known]
    assert products.ask("SELECT MIN(access_rank), MAX(access_rank) FROM product_by_rank") == [(0, ROWS - 1)]
    (mismatched,) = products.ask(
        """SELECT COUNT(*) FROM product_by_rank AS r LEFT JOIN product AS p
        USING (product_id, product_key, price_cents, updated_at) WHERE p.product_id IS NULL"""
    )
    assert mismatched == (0,)


def test_building_a_ranking_changes_nothing_before_it_is_swapped_in(products: Warehouse) -> None:
    """Readers see the old ranking until the new one is swapped in, also after a second build."""
    build_ranking(products.login, products.master)
    swap_in(products.login, products.master)
    before = order(products)
    estimated(products, {77: 1.0})
    build_ranking(products.login, products.master)
    build_ranking(products.login, products.master)
    assert order(products) == before
    assert order(products, "product_by_rank_next")[0] == 77


def test_readers_never_see_a_half_copy(products: Warehouse) -> None:
    """A read returns every row while rankings replace one another."""
    build_ranking(products.login, products.master)
    swap_in(products.login, products.master)
    done = threading.Event()
    seen: list[object] = []

    def look() -> None:
        with connect(products.login) as connection, connection.cursor() as cursor:
            while not done.is_set():
                cursor.execute("SELECT COUNT(*), MAX(access_rank) FROM product_by_rank")
                seen.extend(cursor.fetchall())
                connection.commit()

    reader = threading.Thread(target=look)
    reader.start()
    for key in range(1, 5):
        estimated(products, {key: 1.0})
        build_ranking(products.login, products.master)
        swap_in(products.login, products.master)
    done.set()
    reader.join()
    assert seen
    assert set(seen) == {(ROWS, ROWS - 1)}


def test_building_does_not_wait_for_writers_and_bounds_its_number_of_rows(
    products: Warehouse,
) -> None:
    """A build leaves out an open transaction without waiting for it, and has all rows committed before."""
    with connect(products.login) as writer, writer.cursor() as cursor:
        cursor.execute("DELETE FROM product WHERE product_id <= 100")
        ranking = build_ranking(products.login, products.master)
        assert (ranking.least, ranking.most) == (ROWS, ROWS)
        assert len(order(products, "product_by_rank_next")) == ROWS
    after = build_ranking(products.login, products.master)
    assert (after.least, after.most) == (ROWS - 100, ROWS - 100)
    assert after.position == ranking.position + 100


def test_a_key_that_is_not_unique_is_refused(products: Warehouse) -> None:
    """The ranked copy's unique index refuses a key that is not unique."""
    products.run("ALTER TABLE product DROP PRIMARY KEY", "UPDATE product SET product_id = 1 WHERE product_id = 2")
    with pytest.raises(pymysql.IntegrityError, match="Duplicate entry '1' for key 'by_key'"):
        build_ranking(products.login, products.master)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("table", "produce", "there is no table `produce`"),
        ("columns", ["prize"], "must be columns of `product`, got prize; it has product_id, .*price_cents"),
    ],
)
def test_a_pipeline_that_does_not_fit_its_table_is_an_error_that_names_its_columns(
    products: Warehouse, field: str, value: object, says: str
) -> None:
    """The error for a pipeline that does not fit its table lists the columns; no table is created."""
    with pytest.raises(TableError, match=says):
        prepare(products.login, products.master.model_copy(update={field: value}))


def test_a_key_without_an_index_is_refused_with_the_statement_that_adds_one(products: Warehouse) -> None:
    """A key without an index is refused, because storing an estimate would scan the table for each key."""
    products.run("ALTER TABLE product DROP PRIMARY KEY, ADD INDEX (vendor, product_id)")
    with pytest.raises(TableError, match=r"`product` must have an index .* ADD INDEX \(`product_id`\)"):
        prepare(products.login, products.master)
    both = products.master.model_copy(update={"key": ["category", "vendor"]})
    with pytest.raises(TableError, match=r"`product` must have an index .* ADD INDEX \(`category`, `vendor`\)"):
        prepare(products.login, both)  # an index begins with a part of the key


def test_pipelines_with_different_keys_on_one_table_are_refused(products: Warehouse) -> None:
    """Two pipelines with different keys on one table are refused: they would need different logs and estimates."""
    prepare(products.login, products.master)
    other = products.master.model_copy(update={"key": ["product_key"]})
    with pytest.raises(TableError, match=r"must be \['product_id'\], .* got \['product_key'\]"):
        prepare(products.login, other)
