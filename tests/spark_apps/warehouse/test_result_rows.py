"""A query's rows arrive as Arrow with the values that pymysql reads one by one."""

from __future__ import annotations

from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pymysql
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foundation.connections import connect
from foundation.errors import TableError
from spark_apps.warehouse.result_rows import read_rows, read_table

if TYPE_CHECKING:
    from tests.spark_apps.conftest import Warehouse

pytestmark = pytest.mark.integration
TEXT = st.none() | st.text(st.characters(codec="utf-8"), max_size=400)
NUMBER = st.none() | st.integers(-(2**63), 2**63 - 1)
ROW = st.tuples(NUMBER, TEXT, st.none() | st.binary(max_size=300))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ROW, max_size=40), st.integers(16, 500))
def test_any_rows_are_read_as_pymysql_reads_them(
    empty: Warehouse, rows: list[tuple[Any, ...]], buffer_bytes: int
) -> None:
    """Rows equal pymysql's for NULL, 'NULL', empty text, line breaks and bytes, also if a buffer cuts them."""
    with connect(empty.login) as connection:
        with connection.cursor() as cursor:
            cursor.execute("CREATE OR REPLACE TEMPORARY TABLE t (n INT PRIMARY KEY, i BIGINT, s TEXT, b BLOB)")
            cursor.executemany(
                "INSERT INTO t (n, i, s, b) VALUES (%s, %s, %s, %s)", [(n, *row) for n, row in enumerate(rows)]
            )
        schema, batches = read_rows(connection, "SELECT i, s, b FROM t ORDER BY n", buffer_bytes=buffer_bytes)
        found = pa.Table.from_batches(list(batches), schema)
        assert schema.types == [pa.int64(), pa.string(), pa.binary()]
        assert [tuple(row.values()) for row in found.to_pylist()] == rows
        assert read_table(connection, "SELECT 7 AS n").to_pylist() == [{"n": 7}], "the connection can go on"


def test_each_type_of_the_warehouse_has_an_arrow_type(empty: Warehouse) -> None:
    """Each type of the warehouse is read as its Arrow type, with the right value."""
    empty.run(
        """CREATE TABLE t (a TINYINT UNSIGNED, b SMALLINT, c INT NOT NULL, d BIGINT UNSIGNED, e DECIMAL(9, 2), f DOUBLE,
        g DATE, h DATETIME(3), i CHAR(3), j BINARY(2), k UUID, l ENUM('x', 'y'), m TIME, n BOOLEAN)""",
        """INSERT INTO t VALUES (255, -2, 3, 18446744073709551615, -1.5, 0.1, '2026-02-28', '2026-02-28 01:02:03.004',
        'é', x'00ff', '01890000-0000-7000-8000-000000000001', 'y', '-01:02:03', TRUE)""",
    )
    expected = {
        "a": (pa.uint8(), 255),
        "b": (pa.int16(), -2),
        "c": (pa.int32(), 3),
        "d": (pa.uint64(), 2**64 - 1),
        "e": (pa.decimal128(38, 2), Decimal("-1.50")),
        "f": (pa.float64(), 0.1),
        "g": (pa.date32(), date(2026, 2, 28)),
        "h": (pa.timestamp("us"), datetime(2026, 2, 28, 1, 2, 3, 4000)),  # noqa: DTZ001  # as DATETIME is
        "i": (pa.string(), "é"),
        "j": (pa.binary(), b"\x00\xff"),
        "k": (pa.string(), "01890000-0000-7000-8000-000000000001"),
        "l": (pa.string(), "y"),
        "m": (pa.string(), "-01:02:03"),
        "n": (pa.int8(), 1),
    }
    with connect(empty.login) as connection:
        found = read_table(connection, "SELECT * FROM t")
    assert {field.name: (field.type, found[field.name][0].as_py()) for field in found.schema} == expected
    assert [field.name for field in found.schema if not field.nullable] == ["c"]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("DATE", "0000-00-00"),
        ("DATE", "2026-02-00"),
        ("DATETIME(3)", "0000-00-00 00:00:00.000"),
        ("TIMESTAMP", "0000-00-00 00:00:00"),
    ],
)
def test_a_date_of_zeros_is_an_error_with_table_column_and_remedy(empty: Warehouse, kind: str, value: str) -> None:
    """A date of zeros, as in old tables, is an error, because Arrow does not have it."""
    empty.run(f"CREATE TABLE old (since {kind} NOT NULL)", f"INSERT INTO old VALUES ('{value}')")
    says = f"column `since` of `old` must .*'{value}'.* Replace them .* by NULL or .* or leave the column out"
    with pytest.raises(TableError, match=says), connect(empty.login) as connection:
        read_table(connection, "SELECT since FROM old AS other")


def test_an_error_in_the_middle_of_the_rows_is_raised(empty: Warehouse) -> None:
    """An error in the middle of a result is raised, and the connection is closed; partial rows are not a result."""
    query = "SELECT seq, IF(seq > 90000, (SELECT seq UNION SELECT 0), 1) FROM seq_1_to_100000"
    with suppress(pymysql.InterfaceError), connect(empty.login) as connection:
        _, batches = read_rows(connection, query)
        with pytest.raises(pymysql.OperationalError, match="more than 1 row"):
            pa.Table.from_batches(batches)
        assert not connection.open


def test_abandoned_rows_close_the_connection(empty: Warehouse) -> None:
    """Rows that are not read to the end close the connection, so the rest is not read by another query."""
    with suppress(pymysql.InterfaceError), connect(empty.login) as connection:  # it cannot commit any more
        _, batches = read_rows(connection, "SELECT seq FROM seq_1_to_1000000")
        next(batches)
        batches.close()  # type: ignore[attr-defined]  # it is a generator
        with pytest.raises(pymysql.InterfaceError):
            connection.query("SELECT 1")
