"""A version is published whole and checked, or not at all, and whoever is killed on the way finishes later."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from errno import ENOSPC
from typing import IO, TYPE_CHECKING

import pyarrow as pa
import pymysql
import pytest

from foundation.connections import connect
from foundation.errors import SnapshotError
from spark_apps.master import publish as publishing
from spark_apps.master import ranking as ranked_copies
from spark_apps.master.changes import read_changes
from spark_apps.master.publish import LEAST_PAGE_ROWS, PAGE_BYTES, announce, fitting_rows, publish, write_pages
from spark_apps.master.ranking import build_ranking
from spark_apps.master.snapshots import current
from tests.spark_apps.conftest import ROWS, files, refreshed, rows

if TYPE_CHECKING:
    from pathlib import Path

    from tests.spark_apps.conftest import Warehouse

pytestmark = pytest.mark.integration


def die(*_: object) -> None:
    """End here, as a process that is killed does."""
    raise KeyboardInterrupt


def test_a_copy_that_another_run_has_replaced_is_not_published(products: Warehouse, folder: Path) -> None:
    """What is published is what was checked, not what has as many rows."""
    first = refreshed(products, folder)
    checked = build_ranking(products.login, products.master)
    products.run("UPDATE product SET price_cents = 0")
    build_ranking(products.login, products.master)
    with pytest.raises(SnapshotError, match="`product` that was checked is gone: another run has replaced it"):
        publish(products.login, products.master, checked, folder)
    assert current(folder) == first


def test_runs_take_turns_to_build_and_to_publish(
    products: Warehouse, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that waits for too long says for what."""
    ranking = build_ranking(products.login, products.master)
    monkeypatch.setattr(ranked_copies, "LONGEST_TURN_SECONDS", 0)
    with ranked_copies.one_at_a_time(products.login, products.master):
        with pytest.raises(SnapshotError, match="another run has been ranking or publishing `product`"):
            build_ranking(products.login, products.master)
        with pytest.raises(SnapshotError, match="another run has been ranking or publishing `product`"):
            publish(products.login, products.master, ranking, folder)
    assert publish(products.login, products.master, ranking, folder).version == 1


@pytest.mark.parametrize("moment", ["PageFile", "swap_in", "announce", "remove_old", "prune_changes"])
def test_a_publisher_that_was_killed_finishes_when_it_is_run_again(
    products: Warehouse, folder: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Wherever it was; table and snapshot are then of the same order."""
    refreshed(products, folder)
    products.run("INSERT INTO product_frequency (product_id, access_frequency) VALUES (9, 0.2)")
    ranking = build_ranking(products.login, products.master)
    monkeypatch.setattr(publishing, moment, die)
    with pytest.raises(KeyboardInterrupt):
        publish(products.login, products.master, ranking, folder)
    monkeypatch.undo()
    last = publish(products.login, products.master, ranking, folder)
    assert current(folder) == last
    keys = [row[0] for row in rows(last)]
    assert keys[:2] == [9, 1]
    assert keys == [key for (key,) in products.ask("SELECT product_id FROM product_by_rank ORDER BY access_rank")]
    assert products.ask("SHOW TABLES LIKE 'product\\_by\\_rank%'") == [("product_by_rank",)]


def test_a_version_is_not_announced_before_its_table_is_in_use(
    products: Warehouse, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who reads in a transaction keeps the table in use; when it has ended, publishing finishes."""
    first = refreshed(products, folder)
    ranking = build_ranking(products.login, products.master)
    monkeypatch.setattr(ranked_copies, "LONGEST_WAIT_SECONDS", 1)
    with connect(products.login) as reader, reader.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM product_by_rank")
        with pytest.raises(pymysql.OperationalError, match="Lock wait timeout"):
            publish(products.login, products.master, ranking, folder)
        assert current(folder) == first
    assert publish(products.login, products.master, ranking, folder).version == first.version + 1


@pytest.mark.parametrize(
    "damage",
    [
        ["DELETE FROM product_by_rank_next WHERE access_rank = 7"],
        [
            "ALTER TABLE product_by_rank_next DROP KEY by_key",
            "UPDATE product_by_rank_next SET product_id = 3 WHERE product_id = 5",
        ],
    ],
    ids=["a row less than was checked", "a key twice"],
)
def test_pages_that_are_not_of_what_was_checked_are_not_published(
    products: Warehouse, folder: Path, damage: list[str]
) -> None:
    """Whatever has become of the copy since."""
    first = refreshed(products, folder)
    ranking = build_ranking(products.login, products.master)
    products.run(*damage)
    with pytest.raises(SnapshotError, match=rf"v000002\.pages has .* must have {ROWS} to {ROWS} .*not published"):
        publish(products.login, products.master, ranking, folder)
    assert current(folder) == first


def test_a_disk_that_is_full_leaves_no_half_note_of_a_version(
    products: Warehouse, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers go on with the version that they have."""
    first = refreshed(products, folder)

    def written_in_part(_note: object, file: IO[str]) -> None:
        file.write('{"version": ')
        raise OSError(ENOSPC, os.strerror(ENOSPC))

    monkeypatch.setattr(json, "dump", written_in_part)
    with pytest.raises(OSError, match="No space left"):
        refreshed(products, folder)
    assert current(folder) == first


def test_a_page_of_narrow_rows_fills_its_bytes_and_one_of_wide_rows_has_enough_of_them() -> None:
    """What a page costs at all is shared by many rows, and no page of numbers grows beyond its share of memory."""
    keys = pa.array(range(800), pa.int64())
    narrow = pa.record_batch({"key": keys, "price": keys.cast(pa.uint32())})
    assert fitting_rows(narrow) == PAGE_BYTES // (8 + 4)
    assert PAGE_BYTES // 60 < fitting_rows(narrow.append_column("name", pa.array(["x" * 40] * 800))) < PAGE_BYTES // 50
    assert fitting_rows(narrow.append_column("about", pa.array(["x" * 2000] * 800))) == LEAST_PAGE_ROWS
    assert fitting_rows(narrow.slice(0, 0)) == LEAST_PAGE_ROWS


def test_a_snapshot_has_the_ranked_rows_with_key_and_columns_only(products: Warehouse, folder: Path) -> None:
    """In their order; it tells of itself what readers and people need."""
    products.run("INSERT INTO product_frequency (product_id, access_frequency) VALUES (9, 0.2), (5, 0.7)")
    products.run("SET timestamp = 2000000000", "UPDATE product SET price_cents = 1 WHERE product_id = 3")
    assert current(folder) is None
    snapshot = refreshed(products, folder)
    assert current(folder) == snapshot
    assert (snapshot.version, snapshot.rows, snapshot.position) == (1, ROWS, 1)
    assert snapshot.changed_until == "2033-05-18 03:33:20"
    found = rows(snapshot)
    assert found == products.ask(
        "SELECT product_id, product_key, price_cents FROM product_by_rank ORDER BY access_rank"
    )
    assert [row[0] for row in found[:3]] == [5, 9, 1]


def test_the_next_snapshot_contains_the_changes_and_reading_on_from_it_tells_only_newer_ones(
    products: Warehouse, folder: Path
) -> None:
    """A change that comes while the copy is made is in the log behind the snapshot's position."""
    first = refreshed(products, folder)
    products.run("UPDATE product SET price_cents = 11 WHERE product_id = 1", "DELETE FROM product WHERE product_id = 2")
    ranking = build_ranking(products.login, products.master)
    products.run("UPDATE product SET price_cents = 33 WHERE product_id = 3")
    second = publish(products.login, products.master, ranking, folder)
    assert second.rows == first.rows - 1
    published = {row[0]: row[2] for row in rows(second)}
    assert published[1] == 11
    assert 2 not in published
    with connect(products.login) as connection:
        newer = read_changes(connection, products.master, second.position)
        both = read_changes(connection, products.master, first.position)
    assert newer.rows["product_id"].to_pylist() == [3]
    assert sorted(both.rows["product_id"].to_pylist()) == [1, 3]


def test_changes_that_another_pipeline_on_the_same_table_needs_stay_in_the_log(
    products: Warehouse, folder: Path
) -> None:
    """Whichever of the two is refreshed more often."""
    theirs = refreshed(products, folder.with_name("orders"))
    for price in (1, 2, 3):
        products.run(f"UPDATE product SET price_cents = {price} WHERE product_id = 1")
        refreshed(products, folder)
    with connect(products.login) as connection:
        missed = read_changes(connection, products.master, theirs.position)
    assert missed.rows["price_cents"].to_pylist() == [3]


def test_versions_of_another_table_keep_nothing_in_the_log(products: Warehouse, folder: Path) -> None:
    """Its positions are of another log."""
    theirs = refreshed(products, folder.with_name("orders"))
    announce(replace(theirs, table="customer"))
    for price in (1, 2, 3):
        products.run(f"UPDATE product SET price_cents = {price} WHERE product_id = 1")
        refreshed(products, folder)
    assert products.ask("SELECT COUNT(*) FROM product_change") == [(1,)]


def test_what_a_killed_publisher_left_is_never_read_and_is_cleared_away(products: Warehouse, folder: Path) -> None:
    """Pages that nothing says are whole, and the half of a note that would have said so."""
    first = refreshed(products, folder)
    ranking = build_ranking(products.login, products.master)
    write_pages(products.login, products.master, ranking, folder)
    (folder / "v000002.half").write_text('{"version": 2')
    assert current(folder) == first
    assert publish(products.login, products.master, ranking, folder).version == 2
    assert files(folder) == {f"v00000{version}.{kind}" for version in (1, 2) for kind in ("pages", "json")}
