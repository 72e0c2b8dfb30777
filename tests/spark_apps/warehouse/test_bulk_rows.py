"""A row loaded from Arrow has the same values in the warehouse."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from foundation.connections import connect, login
from foundation.errors import LoadError
from spark_apps.events.reader import EventReader
from spark_apps.pipeline.event_field import EventField
from spark_apps.warehouse.bulk_load import load, loading
from spark_apps.warehouse.bulk_rows import bulk_rows
from spark_apps.warehouse.uuid_bytes import uuid_bytes

if TYPE_CHECKING:
    from uuid import UUID

    from foundation.settings import Settings

pytestmark = pytest.mark.integration
COLUMNS = {
    "id": (pa.int32(), "INT PRIMARY KEY"),
    "small": (pa.int8(), "TINYINT"),
    "whole": (pa.int64(), "BIGINT"),
    "counted": (pa.uint64(), "BIGINT UNSIGNED"),
    "measured": (pa.float64(), "DOUBLE"),
    "coarse": (pa.float32(), "FLOAT"),
    "moment": (pa.timestamp("ms"), "DATETIME(3)"),
    "precise": (pa.timestamp("us"), "DATETIME(6)"),
    "day": (pa.date32(), "DATE"),
    "amount": (pa.decimal128(38, 4), "DECIMAL(38,4)"),
    "text": (pa.string(), "LONGTEXT"),
    "event": (pa.string(), "UUID"),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])
FIRST, LAST = datetime(1000, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
MOMENTS = st.datetimes(FIRST.replace(tzinfo=None), LAST.replace(tzinfo=None))
LENGTHS = (0, 1, 250, 251, 252, 65_535, 65_536)  # on both sides of the lengths that need another number of bytes
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "small": st.integers(-128, 127),
    "whole": st.integers(-(2**63), 2**63 - 1),
    "counted": st.integers(0, 2**64 - 1),
    "measured": st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False),
    "coarse": st.integers(-99_999, 99_999).map(float),  # the server shows six digits of a FLOAT
    "moment": MOMENTS.map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)),
    "precise": MOMENTS,
    "day": st.dates(FIRST.date(), LAST.date()),
    "amount": st.decimals(-(10**33), 10**33, places=4),
    "text": st.one_of(
        st.text(st.characters(exclude_categories=["Cs"])),
        st.sampled_from(LENGTHS).map("x".__mul__),
        st.sampled_from(["\\N", "a\tb\nc\r", "quote ' and \" and \\", "\0", "ä\U0001f600"]),
    ),
    "event": st.uuids(version=4).map(str),
}
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}), max_size=12)


@pytest.fixture(scope="module")
def _table(migrated: Settings) -> None:
    """Create a table with every type."""
    with connect(login("owner", migrated)) as connection, connection.cursor() as cursor:
        body = ", ".join(f"`{name}` {kind}" for name, (_, kind) in COLUMNS.items())
        cursor.execute(f"CREATE OR REPLACE TABLE every_type ({body})")
        cursor.execute("GRANT SELECT, INSERT, DELETE ON every_type TO loader@'%'")


def drained() -> list[tuple[Any, ...]]:
    """Return the table's rows and delete them."""
    with loading() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(f'`{name}`' for name in COLUMNS)} FROM every_type ORDER BY id")
        rows = list(cursor.fetchall())
        cursor.execute("DELETE FROM every_type")
    return rows


@pytest.mark.usefixtures("_table")
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(rows=ROWS, first=st.integers(0, 3), size=st.integers(1, 5))
def test_every_value_arrives_as_it_is(rows: list[dict[str, Any]], first: int, size: int) -> None:
    """Every value arrives unchanged, also NULLs, and from tables of any chunks and slices."""
    numbered = [{"id": number, **row} for number, row in enumerate(rows)]
    table = pa.concat_tables(
        pa.Table.from_pylist(numbered[at : at + size], SCHEMA) for at in range(0, max(len(rows), 1), size)
    ).slice(first)
    with loading() as connection:
        assert load(connection, "every_type", table) == table.num_rows
    assert drained() == [tuple(row[name] for name in COLUMNS) for row in numbered[first:]]


@pytest.mark.usefixtures("_table")
def test_days_of_four_centuries() -> None:
    """Dates are right on leap days, at the ends of years and centuries, and before 1970."""
    days = [date(1600, 2, 27) + timedelta(days=n) for n in range(400 * 366)]
    special = [day for day in days if (day.month, day.day) in {(2, 28), (2, 29), (3, 1), (12, 31), (1, 1)}]
    moments = [datetime(day.year, day.month, day.day, 23, 59, 59, 999_000) for day in special]  # noqa: DTZ001  # as DATETIME is
    table = pa.table({"id": pa.array(range(len(special)), pa.int32()), "moment": pa.array(moments, pa.timestamp("ms"))})
    with loading() as connection:
        load(connection, "every_type", table)
    assert [row[list(COLUMNS).index("moment")] for row in drained()] == moments


@pytest.mark.usefixtures("_table")
def test_many_rows_are_sent_in_pieces() -> None:
    """Rows are sent in pieces within the size limit, except for a single large row; no row is lost."""
    lengths = [5000 if number == 7 else number % 90 for number in range(200)]
    table = pa.table(
        {"id": pa.array(range(200), pa.int32()), "text": ["x" * length for length in lengths]},
        schema=pa.schema([("id", pa.int32()), ("text", pa.string())]),
    )
    (batch,) = table.to_batches()
    pieces = bulk_rows(batch, most_bytes=1000)
    assert sum(count for count, _ in pieces) == 200
    assert [count for count, piece in pieces if len(piece) > 1000] == [1]
    assert len(pieces) <= 2 + sum(length + 11 for length in lengths) // 900
    with loading() as connection:
        assert load(connection, "every_type", table, most_bytes=1000) == 200
    assert [len(row[list(COLUMNS).index("text")]) for row in drained()] == lengths


@pytest.mark.usefixtures("migrated")
def test_events_have_the_uuids_that_the_warehouse_takes() -> None:
    """The event reader rejects a UUID that the warehouse refuses, because it would stop the stream."""
    reader = EventReader({"event": EventField(type="uuid")}, [])
    digits = "0123456789abcdef"
    ids = [f"0e7fdb16-3a4b-{version}9dc-{variant}e79-a805d9339d8a" for version in digits for variant in digits]
    for spelt in (str.lower, str.upper):
        values = [f'{{"event": "{spelt(each)}"}}'.encode() for each in ids]
        count = len(values)
        read = reader.read(pa.array([0] * count, pa.int32()), pa.array(range(count)), pa.array(values, pa.binary()))
        with loading() as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(f'CAST({each!r} AS UUID)' for each in ids)}")
            (accepted,) = cursor.fetchall()
        assert read.events["event"].to_pylist() == [each for each in accepted if each]
    assert len(read.rejected) == 64


@pytest.mark.usefixtures("_table")
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20, deadline=None)
@given(ids=st.lists(st.none() | st.uuids(version=4), max_size=9), first=st.integers(0, 3), size=st.integers(1, 5))
def test_a_uuid_as_bytes_is_the_one_whose_text_they_are(ids: list[UUID | None], first: int, size: int) -> None:
    """A UUID sent as bytes equals the one sent as text, also for NULLs and any chunks and slices."""
    texts = [None if each is None else str(each) for each in ids]
    cut = pa.chunked_array([texts[at : at + size] for at in range(0, len(texts), size)], pa.string()).slice(first)
    numbers = pa.array(range(len(cut)), pa.int32())
    with loading() as connection:
        load(connection, "every_type", pa.table({"id": numbers, "event": uuid_bytes(cut)}))
    assert [row[list(COLUMNS).index("event")] for row in drained()] == texts[first:]


@pytest.mark.parametrize("length", [0, 250, 251, 2**16 - 1, 2**16, 2**24 - 1, 2**24])
def test_a_text_follows_its_length(length: int) -> None:
    """A text is sent after its length, which takes one byte, or a marker byte and two, three or eight bytes."""
    ((_, piece),) = bulk_rows(pa.record_batch({"text": ["x" * length], "end": pa.array([7], pa.uint8())}))
    written = bytes(piece)
    width = {0xFC: 2, 0xFD: 3, 0xFE: 8}.get(written[1], 0)
    stated = int.from_bytes(written[2 : 2 + width], "little") if width else written[1]
    start = 2 + width
    assert (written[0], stated, len(written)) == (0, length, start + length + 9)
    assert written[start : start + length] == b"x" * length
    assert written[start + length :] == b"\0\7" + bytes(7)


@pytest.mark.usefixtures("_table")
@pytest.mark.parametrize("year", [-5, 10_000, 65_536 + 2000])
def test_a_time_outside_of_the_warehouses_years_is_an_error(year: int) -> None:
    """A time outside of the warehouse's years is an error and does not wrap around to a valid one."""
    days = round((year - 1970) * 365.2425)
    moments = pa.array([days * 86_400_000], pa.int64()).cast(pa.timestamp("ms"))
    with loading() as connection, pytest.raises(LoadError, match="incorrect datetime"):
        load(connection, "every_type", pa.table({"id": pa.array([1], pa.int32()), "moment": moments}))


def test_decimals_keep_their_digits() -> None:
    """Decimals are sent as text, so they keep all digits."""
    amount = Decimal("12345678901234567890123456789012.3456")
    batch = pa.record_batch({"amount": pa.array([amount], pa.decimal128(38, 4))})
    ((_, piece),) = bulk_rows(batch)
    assert str(amount).encode() in bytes(piece)
