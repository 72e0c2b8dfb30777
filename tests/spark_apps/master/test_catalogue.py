"""The catalogue has realistic rows in an order independent of sales; all of it is loaded, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from foundation.errors import LoadError
from spark_apps.master.catalogue import CHUNK_ROWS, load_catalogue, make_catalogue

if TYPE_CHECKING:
    from tests.spark_apps.conftest import Warehouse

ROWS = 1500


def catalogue(rows: int, seed: int) -> pa.Table:
    """Make the whole catalogue at once."""
    return pa.Table.from_batches(make_catalogue(rows, seed))


def test_each_key_exists_once_and_warehouse_keys_have_another_order() -> None:
    """Warehouse keys are a permutation of the source's keys; one seed always gives the same one."""
    made = catalogue(ROWS, seed=3)
    everything = list(range(1, ROWS + 1))
    assert made["product_id"].to_pylist() == everything
    assert sorted(made["product_key"].to_pylist()) == everything
    assert made["product_key"].to_pylist() != everything
    assert made.equals(catalogue(ROWS, seed=3))
    assert not made.equals(catalogue(ROWS, seed=4))


def test_a_row_has_about_120_bytes() -> None:
    """A row has about 120 bytes, counted as the table stores them."""
    made = catalogue(ROWS, seed=1)
    text = [name for name in made.column_names if pa.types.is_string(made[name].type)]
    letters = sum(len(value) for name in text for value in made[name].to_pylist())
    assert 110 <= 8 + 4 + 4 + 4 + 6 + letters / ROWS <= 130


def test_barcodes_have_valid_check_digits() -> None:
    """The digits of an EAN-13 barcode, weighted 1 and 3 in turn, add up to a multiple of ten."""
    for barcode in catalogue(ROWS, seed=1)["barcode"].to_pylist():
        assert len(barcode) == 13
        assert sum(int(digit) * (3 if i % 2 else 1) for i, digit in enumerate(barcode)) % 10 == 0


@pytest.mark.integration
def test_it_is_loaded_as_it_was_made_and_only_once(empty: Warehouse) -> None:
    """The table has the generated rows, and a second load changes nothing."""
    assert load_catalogue(empty.login, ROWS, seed=3) == ROWS
    assert load_catalogue(empty.login, 2 * ROWS, seed=4) == ROWS
    made = catalogue(ROWS, seed=3)
    loaded = empty.ask(f"SELECT {', '.join(made.column_names)} FROM product ORDER BY product_id")
    assert loaded == [tuple(row.values()) for row in made.to_pylist()]


@pytest.mark.integration
def test_a_row_that_cannot_be_loaded_leaves_nothing_behind(empty: Warehouse) -> None:
    """When a row cannot be loaded, no row stays, not even of earlier chunks; the error states what was refused."""
    empty.run(f"ALTER TABLE product ADD CHECK (product_id <> {CHUNK_ROWS + 3})")
    reports: list[str] = []
    with pytest.raises(LoadError, match=r"table 'product' must .* of 5, 4 were new, .* CONSTRAINT"):
        load_catalogue(empty.login, CHUNK_ROWS + 5, report=reports.append)
    assert reports == ["100,000 of 100,005 products loaded (100%)"]
    assert empty.ask("SELECT COUNT(*) FROM product") == [(0,)]
