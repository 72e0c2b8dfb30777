"""A reader misses no change of a master row, whatever the order of commits and the clocks."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from foundation.connections import connect
from foundation.errors import ForgottenChangesError, TableError
from spark_apps.master.changes import newest_position, prune_changes, read_changes, waiting_changes
from tests.spark_apps.conftest import ROWS

if TYPE_CHECKING:
    from spark_apps.master.changes import Changes
    from tests.spark_apps.conftest import Warehouse

pytestmark = pytest.mark.integration
WRITERS = 3
TABLE = "SELECT product_id, price_cents FROM product"
PRICE = "UPDATE product SET price_cents = %s WHERE product_id = %s"
INSERT = """INSERT INTO product
    (product_id, product_key, name, vendor, category, price_cents, barcode, weight_grams, description)
    VALUES (%s, %s, 'n', 'v', 'c', %s, 'b', 1, 'd')"""


def read(warehouse: Warehouse, after: int) -> Changes:
    """Read changes on a new connection."""
    with connect(warehouse.login) as connection:
        return read_changes(connection, warehouse.master, after)


def prices(changes: Changes) -> dict[int, int]:
    """Return the changed rows' prices by key."""
    return {row["product_id"]: row["price_cents"] for row in changes.rows.to_pylist()}


def gone(changes: Changes) -> list[int]:
    """Return the deleted rows' keys."""
    return sorted(changes.deleted["product_id"].to_pylist())


def test_updates_inserts_and_deletes_are_read_once_as_the_rows_are_now(products: Warehouse) -> None:
    """Changes are read once, with the current rows; a changed key is one deleted and one new row."""
    products.run(
        "UPDATE product SET price_cents = 1 WHERE product_id = 7",
        "UPDATE product SET price_cents = 2 WHERE product_id = 7",
        "DELETE FROM product WHERE product_id IN (8, 9)",
        INSERT.replace("%s, %s, 'n'", "9, 900009, 'n'").replace("%s", "3"),
        "UPDATE product SET product_id = 5000 WHERE product_id = 10",
    )
    changes = read(products, 0)
    assert changes.rows.column_names == ["product_id", "product_key", "price_cents"]
    assert {key: price for key, price in prices(changes).items() if key != 5000} == {7: 2, 9: 3}
    assert 5000 in prices(changes)
    assert gone(changes) == [8, 10]
    nothing = read(products, changes.position)
    assert (nothing.position, prices(nothing), gone(nothing)) == (changes.position, {}, [])


def test_waiting_changes_are_those_after_a_position_and_those_without_one(products: Warehouse) -> None:
    """A snapshot lacks the committed changes after its position; an open transaction's are not counted yet."""
    products.run("UPDATE product SET price_cents = 1 WHERE product_id IN (1, 2)")
    position = read(products, 0).position
    products.run("UPDATE product SET price_cents = 2 WHERE product_id IN (3, 4, 5)")
    with connect(products.login) as other, other.cursor() as writer, connect(products.login) as connection:
        writer.execute(PRICE, (11, 6))
        assert [waiting_changes(connection, products.master, after) for after in (0, position)] == [5, 3]
    then = read(products, position).position
    with connect(products.login) as connection:
        assert [waiting_changes(connection, products.master, after) for after in (0, position, then)] == [6, 4, 0]


def test_a_transaction_that_began_earlier_and_commits_later_is_not_missed(products: Warehouse) -> None:
    """A reader that has read a higher number still gets a change with a lower one that commits later."""
    with connect(products.login) as early, early.cursor() as first:
        first.execute(PRICE, (11, 1))
        with connect(products.login) as late, late.cursor() as second:
            second.execute(PRICE, (22, 2))
        seen = read(products, 0)
        assert prices(seen) == {2: 22}
        first.execute("DELETE FROM product WHERE product_id = 3")
    then = read(products, seen.position)
    assert (prices(then), gone(then)) == ({1: 11}, [3])


def test_what_was_rolled_back_is_never_told(products: Warehouse) -> None:
    """A reader never gets a change that was rolled back, and the gap in the numbers delays no other."""
    with connect(products.login) as connection, connection.cursor() as cursor:
        cursor.execute(PRICE, (11, 1))
        connection.rollback()
    products.run("UPDATE product SET price_cents = 22 WHERE product_id = 2")
    assert prices(read(products, 0)) == {2: 22}


def test_a_clock_that_steps_back_and_equal_timestamps_hide_nothing(products: Warehouse) -> None:
    """A reader gets all changes when one has an older timestamp than, or the same as, the change before."""
    for now, key in (("2026-06-01 12:00:00", 1), ("2026-06-01 11:00:00", 2), ("2026-06-01 11:00:00", 3)):
        position = read(products, 0).position
        products.run(
            f"SET timestamp = UNIX_TIMESTAMP('{now}')", f"UPDATE product SET price_cents = 5 WHERE product_id = {key}"
        )
        assert products.ask(f"SELECT updated_at = '{now}' FROM product WHERE product_id = {key}") == [(1,)]
        assert prices(read(products, position)) == {key: 5}


def test_a_reader_does_not_wait_for_writers_nor_writers_for_a_reader(products: Warehouse) -> None:
    """Changes are read while a transaction is open, and rows are written while a reader holds its lock."""
    with connect(products.login) as writer, writer.cursor() as cursor:
        cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
        cursor.execute(PRICE, (11, 1))
        with connect(products.login) as reader, reader.cursor() as other:
            other.execute("SET SESSION innodb_lock_wait_timeout = 1")
            assert prices(read_changes(reader, products.master, 0)) == {}
            other.execute("SELECT position FROM master_changes FOR UPDATE")  # the reader's lock
            cursor.execute(PRICE, (12, 2))
            writer.commit()
    assert prices(read(products, 0)) == {1: 11, 2: 12}


def write_at_random(warehouse: Warehouse, seed: int) -> None:
    """Update, delete and insert in transactions of random size; roll some back. Each writer has its own keys."""
    chance = random.Random(seed)  # noqa: S311  # a test's dice
    mine = range(seed + 1, ROWS, WRITERS)
    with connect(warehouse.login) as connection, connection.cursor() as cursor:
        for number in range(40):
            for key in chance.sample(mine, chance.randint(1, 4)):
                cursor.execute(PRICE, (chance.randint(1, 10**6), key))
            cursor.execute("DELETE FROM product WHERE product_id = %s", (chance.choice(mine),))
            new = 10_000 + WRITERS * number + seed
            cursor.execute(INSERT, (new, new, number))
            (connection.rollback if chance.random() < 0.2 else connection.commit)()


def follow(warehouse: Warehouse, written: threading.Event) -> dict[int, int]:
    """Keep a copy of keys and prices up to date by reading changes, until all is written."""
    picture = dict(warehouse.ask(TABLE))
    position, last = 0, False
    with connect(warehouse.login) as connection:
        while not last:
            last = written.is_set()
            changes = read_changes(connection, warehouse.master, position)
            position = changes.position
            picture |= prices(changes)
            for key in gone(changes):
                picture.pop(key, None)
    return picture


def test_concurrent_writers_and_readers_agree_in_the_end(products: Warehouse) -> None:
    """The copies of two readers equal the table after all concurrent writers have ended."""
    written = threading.Event()
    with ThreadPoolExecutor() as pool:
        readers = [pool.submit(follow, products, written) for _ in range(2)]
        writers = [pool.submit(write_at_random, products, seed) for seed in range(WRITERS)]
        failures = [writer.exception() for writer in writers]
        written.set()
    assert failures == [None] * WRITERS
    assert [reader.result() for reader in readers] == [dict(products.ask(TABLE))] * 2


def test_pruned_changes_are_an_error_for_a_reader_that_missed_them(products: Warehouse) -> None:
    """A reader that missed pruned changes gets an error; one that is past them continues."""
    products.run("UPDATE product SET price_cents = 1 WHERE product_id <= 3")
    with connect(products.login) as connection:
        position = newest_position(connection, products.master)
        products.run("UPDATE product SET price_cents = 2 WHERE product_id = 4")
        prune_changes(connection, products.master, position)
    assert products.ask("SELECT COUNT(*) FROM product_change") == [(1,)]
    assert prices(read(products, position)) == {4: 2}
    with pytest.raises(ForgottenChangesError, match=f"after position {position - 1}, .* Take the newest snapshot"):
        read(products, position - 1)
    with pytest.raises(ForgottenChangesError, match=f"after position {position + 9}, .* to {position + 1}"):
        read(products, position + 9)  # a position of an earlier log


def test_changes_that_are_pruned_while_they_are_read_are_still_read(
    products: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read returns changes that are pruned after its check, because check and read use one snapshot of the log."""
    products.run("UPDATE product SET price_cents = 1 WHERE product_id = 3")
    with connect(products.login) as connection:
        query = connection.query

        def prune_first(statement: str, *, unbuffered: bool = False) -> object:
            if "LEFT JOIN" in statement:  # the read, after the check
                with connect(products.login) as other:
                    prune_changes(other, products.master, 1)
            return query(statement, unbuffered)

        monkeypatch.setattr(connection, "query", prune_first)
        assert prices(read_changes(connection, products.master, 0)) == {3: 1}
    assert products.ask("SELECT COUNT(*) FROM product_change") == [(0,)]


def test_a_table_whose_changes_are_not_logged_is_an_error(empty: Warehouse) -> None:
    """The error for a table without a change log states what to run."""
    with pytest.raises(TableError, match=r"`product` are not logged yet\. Run the pipeline's Dag prepare"):
        read(empty, 0)
