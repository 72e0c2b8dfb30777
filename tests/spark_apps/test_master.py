"""Master data: the catalogue is loaded whole or not at all, and published whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from services.warehouse import connect, login
from spark_apps.master import snapshot
from spark_apps.master.catalogue import load_catalogue, make_catalogue

if TYPE_CHECKING:
    from pathlib import Path

    from services.settings import Settings
    from services.warehouse import Login

ROWS = 1500


@pytest.fixture
def owner(migrated: Settings) -> Login:
    """A schema of this test alone, with the warehouse's tables, as its owner sees it."""
    from dataclasses import replace

    root = login("root", migrated)
    with connect(root) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE OR REPLACE DATABASE freshet_master")
        for table in ("product", "product_frequency"):
            cursor.execute(f"CREATE TABLE freshet_master.{table} LIKE {migrated.database}.{table}")
    return replace(root, database="freshet_master")


def test_a_catalogue_has_each_key_once_in_an_order_that_is_not_the_warehouses() -> None:
    """Source keys and warehouse keys are two permutations of the same numbers."""
    catalogue = make_catalogue(ROWS, seed=3)
    everything = list(range(1, ROWS + 1))
    assert catalogue["product_id"].to_pylist() == everything
    assert sorted(catalogue["product_key"].to_pylist()) == everything
    assert catalogue["product_key"].to_pylist() != everything
    assert catalogue.equals(make_catalogue(ROWS, seed=3))


@pytest.mark.integration
def test_the_catalogue_arrives_row_by_row_as_it_was_made(owner: Login) -> None:
    """And a second call leaves it as it is."""
    assert load_catalogue(owner, ROWS, seed=3) == ROWS
    assert load_catalogue(owner, 2 * ROWS, seed=4) == ROWS
    made = make_catalogue(ROWS, seed=3)
    with connect(owner) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT product_id, product_key, name, vendor, category, price_cents FROM product ORDER BY product_id"
        )
        assert list(cursor.fetchall()) == [tuple(row.values()) for row in made.to_pylist()]


@pytest.mark.integration
def test_a_snapshot_is_in_the_order_of_the_estimate_and_keeps_what_was_never_seen(owner: Login, tmp_path: Path) -> None:
    """Most frequent first; then the others, by key."""
    load_catalogue(owner, ROWS)
    with connect(owner) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO product_frequency (product_id, access_frequency) VALUES (9, 0.2), (5, 0.7)")
    assert snapshot.publish(owner, tmp_path) == (1, ROWS)
    keys = snapshot.read(tmp_path, 1)["product_id"].to_pylist()
    assert keys == [5, 9, *(key for key in range(1, ROWS + 1) if key not in (5, 9))]


@pytest.mark.integration
def test_an_empty_master_table_never_replaces_a_good_snapshot(owner: Login, tmp_path: Path) -> None:
    """The refusal says what to do; readers stay on the version that they have."""
    load_catalogue(owner, ROWS)
    snapshot.publish(owner, tmp_path)
    with connect(owner) as connection, connection.cursor() as cursor:
        cursor.execute("DELETE FROM product")
    with pytest.raises(snapshot.SnapshotError, match="`product` is empty: nothing is published"):
        snapshot.publish(owner, tmp_path)
    assert snapshot.current_version(tmp_path) == 1
    assert len(snapshot.read(tmp_path, 1)) == ROWS
