"""Rows are loaded unchanged; a row that cannot be loaded is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from foundation.connections import connect, login
from foundation.errors import LoadError
from spark_apps.warehouse.bulk_load import load, loading

if TYPE_CHECKING:
    from foundation.settings import Settings

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def _table(migrated: Settings) -> None:
    """Create an empty table with constraints."""
    with connect(login("owner", migrated)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "CREATE OR REPLACE TABLE few (n BIGINT UNSIGNED PRIMARY KEY, other TINYINT UNSIGNED, "
            "CONSTRAINT small CHECK (other < 200), UNIQUE KEY by_other (other))"
        )
        cursor.execute("GRANT SELECT, INSERT ON few TO loader@'%'")


def rows(numbers: range, others: list[int | None]) -> pa.Table:
    """Return Arrow rows for the table."""
    return pa.table({"n": pa.array(numbers, pa.int64()), "other": pa.array(others, pa.int64())})


def test_a_row_that_is_there_already_stays_as_it_is() -> None:
    """A duplicate leaves the existing row unchanged, also with more duplicates than the server keeps warnings."""
    with loading() as connection:
        assert load(connection, "few", rows(range(1000), [None] * 1000)) == 1000
        assert load(connection, "few", rows(range(500, 1501), [None] * 1000 + [7])) == 501
        assert load(connection, "few", rows(range(1500, 1501), [9])) == 0
        with connection.cursor() as cursor:
            cursor.execute("SELECT COUNT(*), SUM(other) FROM few")
            assert cursor.fetchall() == ((1501, 7),)


@pytest.mark.parametrize(
    ("others", "says"),
    [([3, 300], "Out of range"), ([3, 250], "CONSTRAINT `small` failed"), ([3, 3], "Duplicate entry '3' for key")],
)
def test_a_row_that_the_table_does_not_take_is_an_error(others: list[int | None], says: str) -> None:
    """A value out of range, a violated constraint or a duplicate of another unique column is an error, not skipped."""
    with loading() as connection:
        with pytest.raises(LoadError, match=says):
            load(connection, "few", rows(range(2), others))
        assert load(connection, "few", rows(range(2, 4), [4, 5])) == 2, "the connection is usable"
        with connection.cursor() as cursor:
            cursor.execute("SHOW SESSION STATUS LIKE 'Com_stmt_close'")
            assert cursor.fetchall() == (("Com_stmt_close", "2"),)


@pytest.mark.parametrize("bad", [0, 69_999, 70_000, 139_999], ids="row {}".format)
def test_one_bad_row_among_very_many_duplicates_is_an_error(bad: int) -> None:
    """A bad row is an error in any of the load commands, however many warnings the duplicates cause."""
    others: list[int | None] = [None] * 140_000
    with connect(login("owner"), bulk=True) as connection:
        numbers = range(140_000)
        assert load(connection, "few", rows(numbers, others).filter([number != bad for number in numbers])) == 139_999
        others[bad] = 250
        with pytest.raises(LoadError, match="CONSTRAINT `small` failed"):
            load(connection, "few", rows(numbers, others))


def test_a_connection_that_is_not_opened_for_bulk_is_a_programming_error(migrated: Settings) -> None:
    """A load on an ordinary connection is a TypeError, not an error for an operator."""
    with connect(login("owner", migrated)) as connection, pytest.raises(TypeError, match="bulk=True"):
        load(connection, "few", rows(range(1), [None]))
