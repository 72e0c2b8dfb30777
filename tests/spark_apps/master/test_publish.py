"""A version is published completely and checked, or not at all; publishing can run again after a kill."""

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
from foundation.errors import AlreadyRunningError, SnapshotError
from spark_apps.master import publish as publishing
from spark_apps.master.changes import read_changes
from spark_apps.master.publish import LEAST_PAGE_ROWS, PAGE_BYTES, announce, fitting_rows, publish, write_pages
from spark_apps.master.ranking import Patience, build_ranking, one_at_a_time
from spark_apps.master.snapshots import current
from tests.spark_apps.conftest import ROWS, files, refreshed, rows

if TYPE_CHECKING:
    from pathlib import Path

    from tests.spark_apps.conftest import Warehouse

pytestmark = pytest.mark.integration


def die(*_: object) -> None:
    """Raise an error at this step, as if the process were killed."""
    raise KeyboardInterrupt


def test_a_copy_that_another_run_has_replaced_is_not_published(products: Warehouse, folder: Path) -> None:
    """A run publishes only the copy that it has checked, not another one with the same number of rows."""
    first = refreshed(products, folder)
    checked = build_ranking(products.login, products.master)
    products.run("UPDATE product SET price_cents = 0")
    build_ranking(products.login, products.master)
    with pytest.raises(SnapshotError, match="`product` that was checked is gone: another run has replaced it"):
        publish(products.login, products.master, checked, folder)
    assert current(folder) == first


def test_runs_take_turns_to_build_and_to_publish(products: Warehouse, folder: Path) -> None:
    """Only one run builds or publishes at a time; a run that waits too long fails with what it waits for."""
    ranking = build_ranking(products.login, products.master)
    none = Patience(run_seconds=0)
    with one_at_a_time(products.login, products.master):
        with pytest.raises(AlreadyRunningError, match="another run still ranks or publishes `product` after 0 s"):
            build_ranking(products.login, products.master, none)
        with pytest.raises(AlreadyRunningError, match="another run still ranks or publishes `product` after 0 s"):
            publish(products.login, products.master, ranking, folder, patience=none)
    assert publish(products.login, products.master, ranking, folder).version == 1


@pytest.mark.parametrize("moment", ["PageFile", "swap_in", "announce", "remove_old", "prune_changes"])
def test_a_publisher_that_was_killed_finishes_when_it_runs_again(
    products: Warehouse, folder: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """A publisher killed at any step finishes on its next run; ranked copy and snapshot have the same order."""
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


def test_a_version_is_not_announced_before_its_copy_is_in_use(products: Warehouse, folder: Path) -> None:
    """A reader's open transaction delays the swap of the copy; the version is announced after it ends."""
    first = refreshed(products, folder)
    ranking = build_ranking(products.login, products.master)
    short = Patience(reader_seconds=1)
    with connect(products.login) as reader, reader.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM product_by_rank")
        with pytest.raises(pymysql.OperationalError, match="Lock wait timeout"):
            publish(products.login, products.master, ranking, folder, patience=short)
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
    ids=["a missing row", "a key twice"],
)
def test_pages_of_rows_that_were_not_checked_are_not_published(
    products: Warehouse, folder: Path, damage: list[str]
) -> None:
    """A copy that has changed in any way since its check is not published."""
    first = refreshed(products, folder)
    ranking = build_ranking(products.login, products.master)
    products.run(*damage)
    with pytest.raises(SnapshotError, match=rf"v000002\.pages must have {ROWS} to {ROWS} rows .*not published"):
        publish(products.login, products.master, ranking, folder)
    assert current(folder) == first


def test_a_full_disk_leaves_no_half_manifest(
    products: Warehouse, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the disk is full, readers keep using the version before."""
    first = refreshed(products, folder)

    def written_in_part(_attributes: object, file: IO[str]) -> None:
        file.write('{"version": ')
        raise OSError(ENOSPC, os.strerror(ENOSPC))

    monkeypatch.setattr(json, "dump", written_in_part)
    with pytest.raises(OSError, match="No space left"):
        refreshed(products, folder)
    assert current(folder) == first


def test_a_page_of_narrow_rows_fills_its_bytes_and_one_of_wide_rows_has_enough_of_them() -> None:
    """A page of narrow rows is filled up to its size in bytes; one of wide rows has a minimum number of rows."""
    keys = pa.array(range(800), pa.int64())
    narrow = pa.record_batch({"key": keys, "price": keys.cast(pa.uint32())})
    assert fitting_rows(narrow) == PAGE_BYTES // (8 + 4)
    assert PAGE_BYTES // 60 < fitting_rows(narrow.append_column("name", pa.array(["x" * 40] * 800))) < PAGE_BYTES // 50
    assert fitting_rows(narrow.append_column("about", pa.array(["x" * 2000] * 800))) == LEAST_PAGE_ROWS
    assert fitting_rows(narrow.slice(0, 0)) == LEAST_PAGE_ROWS


def test_a_snapshot_has_the_ranked_rows_with_key_and_columns_only(products: Warehouse, folder: Path) -> None:
    """A snapshot has key and columns in ranked order; the manifest has version, rows, position and newest change."""
    products.run("INSERT INTO product_frequency (product_id, access_frequency) VALUES (9, 0.2), (5, 0.7)")
    products.run("SET timestamp = 2000000000", "UPDATE product SET price_cents = 1 WHERE product_id = 3")
    assert current(folder) is None
    snapshot = refreshed(products, folder)
    assert current(folder) == snapshot
    assert (snapshot.version, snapshot.rows, snapshot.position) == (1, ROWS, 1)
    assert snapshot.changed_until == "2033-05-18 03:33:20"
    published = rows(snapshot)
    assert published == products.ask(
        "SELECT product_id, product_key, price_cents FROM product_by_rank ORDER BY access_rank"
    )
    assert [row[0] for row in published[:3]] == [5, 9, 1]


def test_the_next_snapshot_has_the_changes_and_only_newer_ones_are_behind_its_position(
    products: Warehouse, folder: Path
) -> None:
    """A snapshot has all earlier changes; one made after the ranking is in the log after its position."""
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
    """The log keeps changes that a pipeline needs, even if another pipeline on the table is refreshed more often."""
    theirs = refreshed(products, folder.with_name("orders"))
    for price in (1, 2, 3):
        products.run(f"UPDATE product SET price_cents = {price} WHERE product_id = 1")
        refreshed(products, folder)
    with connect(products.login) as connection:
        missed = read_changes(connection, products.master, theirs.position)
    assert missed.rows["price_cents"].to_pylist() == [3]


def test_versions_of_another_table_keep_nothing_in_the_log(products: Warehouse, folder: Path) -> None:
    """Versions of another table keep no changes in this table's log, because their positions are of another log."""
    theirs = refreshed(products, folder.with_name("orders"))
    announce(replace(theirs, table="customer"))
    for price in (1, 2, 3):
        products.run(f"UPDATE product SET price_cents = {price} WHERE product_id = 1")
        refreshed(products, folder)
    assert products.ask("SELECT COUNT(*) FROM product_change") == [(1,)]


def test_files_of_a_killed_publisher_are_never_read_and_are_removed(products: Warehouse, folder: Path) -> None:
    """Pages without a manifest, and half a manifest, are not read, and the next run removes them."""
    first = refreshed(products, folder)
    ranking = build_ranking(products.login, products.master)
    write_pages(products.login, products.master, ranking, folder)
    (folder / "v000002.half").write_text('{"version": 2')
    assert current(folder) == first
    assert publish(products.login, products.master, ranking, folder).version == 2
    assert files(folder) == {f"v00000{version}.{kind}" for version in (1, 2) for kind in ("pages", "json")}
