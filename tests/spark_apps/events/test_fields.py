"""What a pipeline's file can say about a field: optional, where it is, and every type."""

from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_apps.events.reader import EventReader
from tests.spark_apps.events.reading import as_fields, assert_read_alike, pair, read, refuse, written

if TYPE_CHECKING:
    from random import Random


def only(said: object, json_text: str) -> Any:  # noqa: ANN401  # of the field's type
    """Return what one field becomes, whose event must be plain; `said` is what the file says about it."""
    (row,), _ = read(EventReader(as_fields({"value": said}), [], refuse), f'{{"value": {json_text} }}'.encode())
    return row["value"]


def reason(value: object, said: object) -> str:
    """Return why an event with one field is rejected."""
    _, rejected = read(EventReader(as_fields({"value": said}), []), json.dumps({"value": value}).encode())
    return rejected[0]


LONG = "1234567890123456789012345678"


def moment(text: str) -> datetime:
    """Return a time without a time zone."""
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("said", "value", "expected"),
    [
        ("int32", -(2**31), -(2**31)),
        ("boolean", True, True),
        ("boolean", False, False),
        ("date", "2024-02-29", date(2024, 2, 29)),
        ("date", "1000-01-01", date(1000, 1, 1)),
        ("decimal(10, 2)", 12.5, Decimal("12.50")),
        ("decimal(10,2)", -7, Decimal("-7.00")),
        ("decimal(18, 0)", 10**18 - 1, Decimal(10**18 - 1)),
        ("bytes", "", b""),
        ("bytes", base64.b64encode(bytes(range(255))).decode(), bytes(range(255))),
        ("bytes", "QQ==", b"A"),
        ("bytes", "+/8=", b"\xfb\xff"),
        ({"type": "timestamp", "unit": "s"}, 1767323045, moment("2026-01-02T03:04:05")),
        ({"type": "timestamp", "unit": "s"}, 1767323045.678, moment("2026-01-02T03:04:05.678")),
        ({"type": "timestamp", "unit": "s"}, -0.25, moment("1969-12-31T23:59:59.750")),
        ({"type": "timestamp", "unit": "ms"}, 1767323045678, moment("2026-01-02T03:04:05.678")),
        ({"type": "timestamp", "unit": "ms"}, -0.5, moment("1969-12-31T23:59:59.999")),
        ({"type": "timestamp", "unit": "ms", "quoted": True}, "1767323045678", moment("2026-01-02T03:04:05.678")),
        ({"type": "timestamp", "zone": "UTC"}, "2026-01-02T03:04:05", moment("2026-01-02T03:04:05")),
        ({"type": "timestamp", "zone": "Europe/Berlin"}, "2026-01-02 03:04:05.6", moment("2026-01-02T02:04:05.600")),
        ({"type": "timestamp", "zone": "Europe/Berlin"}, "2026-07-02 03:04:05", moment("2026-07-02T01:04:05")),
        ({"type": "timestamp", "zone": "Europe/Berlin"}, "2026-07-02T03:04:05Z", moment("2026-07-02T03:04:05")),
        ("timestamp", "2026-01-02 03:04:05+00", moment("2026-01-02T03:04:05")),
        ({"type": "int64", "quoted": True}, "-42", -42),
        ({"type": "int64", "quoted": True}, -42, -42),
        ({"type": "float64", "quoted": True}, "0.30000000000000004", 0.30000000000000004),
        ({"type": "decimal(20, 3)", "quoted": True}, "12.340000", Decimal("12.340")),
    ],
)
def test_a_value_of_each_type_is_plain(said: object, value: object, expected: object) -> None:
    """The scanner reads the usual forms of every type."""
    assert only(said, json.dumps(value)) == expected


@pytest.mark.parametrize(
    ("said", "value", "expected"),
    [
        (
            "decimal(38, 10)",
            "1234567890123456789012345678.0123456789",
            Decimal("1234567890123456789012345678.0123456789"),
        ),
        ("decimal(10, 2)", "1.25e3", Decimal("1250.00")),
        ({"type": "timestamp", "unit": "s"}, "1.767323045678e9", moment("2026-01-02T03:04:05.678")),
        ({"type": "timestamp", "zone": "Europe/Berlin"}, '"1890-01-01 00:53:28"', moment("1890-01-01T00:00:00")),
    ],
)
def test_a_value_in_a_rare_form_is_read_carefully(said: object, value: str, expected: object) -> None:
    """Forms that the scanner leaves to the careful reader have their values, too."""
    rows, rejected = read(EventReader(as_fields({"value": said}), []), f'{{"value": {value}}}'.encode())
    assert not rejected
    assert rows[0]["value"] == expected


@pytest.mark.parametrize(
    ("said", "value", "rule"),
    [
        ("int32", 2**31, "must be a whole number of -2147483648 to 2147483647, got 2147483648"),
        ("boolean", 1, "must be true or false, got 1"),
        ("boolean", "true", "must be true or false"),
        ("date", "2026-02-29", "must be a date like 2026-01-02, in the years 1000 to 9999, got '2026-02-29'"),
        ("date", "0999-12-31", "must be a date like 2026-01-02"),
        ("date", "2026-01-02T00:00:00Z", "must be a date like 2026-01-02"),
        ("decimal(10, 2)", 1.005, "must be a number with at most 8 digits before the point and 2 behind it, got 1.005"),
        ("decimal(10, 2)", 10**8, "must be a number with at most 8 digits before the point"),
        ("decimal(10, 2)", "1", "must be a number"),
        ("bytes", "QQ=", "must be at most 255 bytes in base64"),
        ("bytes", "Q===", "must be at most 255 bytes in base64"),
        ("float64", 10**400, "must be a finite number"),
        ("bytes", "Q-==", "must be at most 255 bytes in base64"),
        ("bytes", base64.b64encode(bytes(256)).decode(), "must be at most 255 bytes"),
        ("json", None, "must not be null"),
        ({"type": "timestamp", "unit": "ms"}, "2026-01-02T03:04:05Z", "must be a number of milliseconds since 1970"),
        ({"type": "timestamp", "unit": "s"}, 10**15, "must be a number of seconds since 1970, in the years"),
        ({"type": "timestamp", "zone": "UTC"}, "2026-01-02", "must be a time like 2026-01-02T03:04:05.678, in"),
        ({"type": "int64", "quoted": True}, "0x7", "must be a whole number"),
        ({"type": "int64", "quoted": True}, "7 ", "must be a whole number"),
        ({"type": "int64", "quoted": True}, "9" * 5000, "must be a whole number"),
        ("int64", "7", "must be a whole number"),
    ],
)
def test_a_value_that_breaks_a_rule_is_named(said: object, value: object, rule: str) -> None:
    """The reason of a rejected event has the rule of the type and the value."""
    assert reason(value, said).startswith(f"value: {rule}")


def test_json_is_the_text_as_it_is() -> None:
    """A field of the type json has the event's own text: its spaces, its order, its long numbers."""
    for text in ('{"b": [1,  2.50],"a":{}}', "[]", "-0.0", r'"\u00e4"', "true", "123456789012345678901234567890"):
        assert only("json", text) == text


def test_an_optional_field_may_be_null_or_missing() -> None:
    """A nullable field is null and a field with a default has it, whether the event has a null or nothing."""
    fields = as_fields(
        {
            "key": "int64",
            "note": {"type": "string", "nullable": True},
            "size": {"type": "int32", "default": 1},
            "price": {"type": "decimal(6, 2)", "default": "0.50", "quoted": True},
            "tags": {"type": "json", "default": "[]"},
            "at": {"type": "timestamp", "default": "2026-01-02T03:04:05Z"},
            "level": {"type": "float64", "nullable": True},
        }
    )
    empty = {
        "note": None,
        "size": 1,
        "price": Decimal("0.50"),
        "tags": "[]",
        "at": moment("2026-01-02T03:04:05"),
        "level": None,
    }
    reader = EventReader(fields, ["key"], refuse)
    nulls = dict.fromkeys(empty)
    given = {"note": "x", "size": 2, "price": "1.25", "tags": [2], "at": "2026-01-02T03:04:06Z", "level": 0.5}
    rows, _ = read(reader, *(json.dumps({"key": 7, **each}).encode() for each in ({}, nulls, given, {"key": None})))
    assert [{**row, "kafka_partition": 4, "kafka_offset": 0} for row in rows[:2]] == [
        {"kafka_partition": 4, "kafka_offset": 0, "key": 7, **empty}
    ] * 2
    assert (rows[2]["note"], rows[2]["size"], rows[2]["price"], rows[2]["tags"]) == ("x", 2, Decimal("1.25"), "[2]")
    assert (rows[3]["key"], rows[3]["size"]) == (None, 1)
    assert read(EventReader(fields, ["key"]), b'{"size": 1}')[1] == {0: "key: missing"}
    assert "size: must be a whole number" in read(EventReader(fields, ["key"]), b'{"key": 1, "size": "x"}')[1][0]


PATHS = as_fields(
    {
        "product": {"type": "int64", "path": "$.line.items[0].product-id"},
        "second": {"type": "int64", "path": "$.line.items[1].product-id", "nullable": True},
        "shop": {"type": "string", "path": "$['the shop'].name"},
        "odd": {"type": "string", "path": '$["a\\"b\\u00e4."]', "default": "none"},
        "latest": {"type": "int64", "path": "$.matrix[1][2]", "nullable": True},
        "plain": "int64",
    }
)
NESTED = {
    "line": {"no": 4, "items": [{"sku": "x", "product-id": 7}, {"product-id": 8}, {"product-id": 9}]},
    "the shop": {"name": "Riga", "town": {"name": "other"}},
    'a"bä.': "odd",
    "matrix": [[1, 2, 3], [4, 5, 6]],
    "plain": 1,
    "product": "not this one",
}
VALUES = {"product": 7, "second": 8, "shop": "Riga", "odd": "odd", "latest": 6, "plain": 1}


def test_a_path_leads_to_nested_values() -> None:
    """Names in any spelling, nested objects and elements of arrays are plain."""
    (row,), _ = read(EventReader(PATHS, [], refuse), json.dumps(NESTED).encode())
    assert {name: row[name] for name in VALUES} == VALUES


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"line": {"items": []}}, "product: missing"),
        ({"line": {}}, "product: missing"),
        ({"line": 5}, "product: missing"),
        ({"line": None}, "product: missing"),
        ({"line": {"items": {"0": {"product-id": 7}}}}, "product: missing"),
        ({"line": [{"items": 1}]}, "product: missing"),
        ({"line": {"items": [{"product-id": {}}]}}, "product: must be a whole number"),
        ({"the shop": {"name": None}}, "shop: must be a text"),
        ({"matrix": [1, [4, 5]]}, None),
        ({"matrix": {}}, None),
        ({"line": {"items": [{"product-id": 7}, None]}}, None),
    ],
)
def test_a_path_that_leads_nowhere_is_a_missing_field(changed: dict[str, Any], expected: str | None) -> None:
    """A required field whose path the event does not have is missing; an optional one is null."""
    rows, rejected = read(EventReader(PATHS, []), json.dumps({**NESTED, **changed}).encode())
    if expected is None:
        assert not rejected
        assert None in {rows[0]["second"], rows[0]["latest"]}
    else:
        assert rejected[0].startswith(expected)


def test_a_step_that_is_there_twice_is_an_error() -> None:
    """An object on a path that is there twice makes the event unreadable, also if only one of them has the field."""
    text = json.dumps(NESTED)[:-1] + ', "line": {}}'
    assert read(EventReader(PATHS, []), text.encode())[1] == {0: "product: there twice"}


ZONES = ["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu", "UTC"]


@given(
    st.sampled_from(ZONES),
    st.datetimes(datetime(1960, 1, 1), datetime(2110, 1, 1)),  # noqa: DTZ001
    st.integers(-7200, 7200),
)
def test_a_local_time_is_that_of_its_zone(zone: str, near: datetime, seconds: int) -> None:
    """A time without an offset is one of the zone's, on both sides of each change of the clock."""
    known = ZoneInfo(zone)
    local = near.replace(microsecond=0)
    for days in range(0, 370, 30):  # towards the next change of the clock
        day = near + timedelta(days=days)
        if day.replace(tzinfo=known).utcoffset() != near.replace(tzinfo=known).utcoffset():
            local = _first_of_the_other_offset(near + timedelta(days=days - 30), day, known)
            break
    local = (local + timedelta(seconds=seconds)).replace(microsecond=0)
    expected = local.replace(tzinfo=known).astimezone(UTC).replace(tzinfo=None)
    reader = EventReader(as_fields({"value": {"type": "timestamp", "zone": zone}}), [])
    (row,), _ = read(reader, json.dumps({"value": local.isoformat()}).encode())
    assert row["value"] == expected


def _first_of_the_other_offset(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    while after - before > timedelta(seconds=1):
        middle = before + (after - before) / 2
        if middle.replace(tzinfo=zone).utcoffset() == after.replace(tzinfo=zone).utcoffset():
            after = middle
        else:
            before = middle
    return after


ALL = as_fields(
    {
        "small": {"type": "int32", "path": "$.a.small", "default": -1},
        "large": {"type": "int64", "path": "$.a.b[0]", "quoted": True},
        "price": {"type": "decimal(8, 2)", "path": "$.a.b[2].price", "quoted": True, "nullable": True},
        "rate": {"type": "decimal(30, 12)", "nullable": True},
        "ok": {"type": "boolean", "path": "$['o k']"},
        "day": "date",
        "raw": {"type": "json", "nullable": True},
        "data": {"type": "bytes", "default": "QQ=="},
        "seconds": {"type": "timestamp", "unit": "s", "quoted": True},
        "millis": {"type": "timestamp", "unit": "ms", "nullable": True},
        "local": {"type": "timestamp", "zone": "Europe/Berlin"},
    }
)
READERS = pair(ALL, ["large"])
TEXTS = st.text(st.sampled_from('a/"\\\n0é😀\ud800'), max_size=4)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS | st.just("price"), inner, max_size=3),
    max_leaves=6,
)
FIGURES = st.one_of(
    st.integers(-(2**65), 2**65),
    st.integers(-1000, 1000),
    st.decimals(-(10**7), 10**7, places=2).map(float),
    st.floats(allow_nan=False, allow_infinity=False),
)
WRITTEN_FIGURES = FIGURES | FIGURES.map(str) | st.sampled_from(["1.", "-", "01", "1e5", "-0", "1.50", "0.001", "+1"])
DAYS = st.sampled_from(["2026-01-02", "2024-02-29", "2026-02-29", "0999-12-31", "1000-01-01", "9999-12-31", "2026-1-2"])
BASE64 = st.binary(max_size=6).map(lambda each: base64.b64encode(each).decode()) | st.text("Aa0+/=-", max_size=9)
LOCAL = st.datetimes(datetime(1900, 1, 1), datetime(2120, 1, 1)).map(str) | DAYS  # noqa: DTZ001


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    """Draw an event that mostly has what it must have."""
    a = {"small": draw(FIGURES | ANYTHING), "b": draw(ANYTHING)}
    if draw(st.booleans()):
        a = {"small": 5, "b": [draw(WRITTEN_FIGURES), draw(ANYTHING), {"price": draw(WRITTEN_FIGURES | ANYTHING)}]}
    event = {
        "a": a,
        "rate": draw(FIGURES),
        "o k": draw(st.booleans() | ANYTHING),
        "day": draw(DAYS),
        "raw": draw(ANYTHING),
        "data": draw(BASE64),
        "seconds": draw(WRITTEN_FIGURES),
        "millis": draw(FIGURES),
        "local": draw(LOCAL),
    }
    return event | draw(st.dictionaries(st.sampled_from([*event, "x"]), ANYTHING, max_size=1))


@given(
    events(),
    st.sets(st.sampled_from(["a", "rate", "o k", "day", "raw", "data", "millis"]), max_size=1),
    st.randoms(use_true_random=False),
    st.integers(0),
    st.binary(max_size=1),
)
def test_all_types_and_paths_are_read_as_the_careful_reader_does(
    event: dict[str, Any], gone: set[str], random: Random, place: int, damage: bytes
) -> None:
    """The scanner and the careful reader agree about every type, path and option, also on damaged events."""
    kept = {name: value for name, value in event.items() if name not in gone}
    text = written(kept, random).encode(errors="surrogatepass")
    at = place % (len(text) + 1)
    assert_read_alike(READERS, text, text[:at] + damage + text[at + 1 :])
