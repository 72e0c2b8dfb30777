"""Events in the forms that producers write are plain, and read as the careful reader reads them."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_apps.events.reader import EventReader
from tests.spark_apps.events.reading import as_fields, assert_read_alike, pair, read, refuse, written

if TYPE_CHECKING:
    from random import Random

FIELDS = as_fields(
    {"id": "uuid", "key": "int64", "count": "uint32", "level": "float64", "note": "string", "at": "timestamp"}
)
READERS = pair(FIELDS, ["key"])
SCANNER = EventReader(FIELDS, ["key"], refuse)
GOOD: dict[str, Any] = {
    "id": "01890000-0000-7000-8000-00000000000a",
    "key": 7,
    "count": 2,
    "level": 21.5,
    "note": "fine",
    "at": "2026-01-02T03:04:05.678Z",
}
MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678000)  # noqa: DTZ001 - the warehouse's times are UTC without a time zone
ROW = {"kafka_partition": 4, "kafka_offset": 100, **GOOD, "at": MOMENT}


def plain(text: bytes) -> dict[str, Any]:
    """Return the row of an event that must be plain."""
    (row,), _ = read(SCANNER, text)
    return row


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-02T05:04:05.678+02:00",
        "2026-01-01T15:34:05.678-1130",
        "2026-01-02T05:04:05.678+02",
        "2026-01-02T03:04:05.678901Z",
        "2026-01-02T03:04:05.678999999Z",
        "2026-01-02T03:04:05.6780-00:00",
    ],
)
def test_a_time_with_an_offset_or_a_longer_fraction_is_plain(text: str) -> None:
    """A time is read to the millisecond in UTC, whatever its offset and however many digits its fraction has."""
    assert plain(json.dumps({**GOOD, "at": text}).encode()) == ROW


@pytest.mark.parametrize(("fraction", "milliseconds"), [("", 0), (".6", 600), (".06", 60), (".0069", 6)])
def test_a_short_fraction_is_one_of_a_second(fraction: str, milliseconds: int) -> None:
    """A fraction counts tenths, hundredths and thousandths of a second; what is less is left out."""
    expected = MOMENT.replace(microsecond=milliseconds * 1000)
    assert plain(json.dumps({**GOOD, "at": f"2026-01-02T03:04:05{fraction}Z"}).encode())["at"] == expected


def test_a_text_with_escapes_is_plain() -> None:
    r"""A text has what its escapes stand for, surrogate pairs too; a name may have escapes as well."""
    text = rb'"\"\\\/\b\f\n\r\t \u0000\u007f\u0080\u07ff\u0800\uFFFF\ud83d\uDE00 \u00e4\u5546"'
    expected = '"\\/\b\f\n\r\t \x00\x7f\x80\u07ff\u0800\uffff\U0001f600 \u00e4\u5546'
    event = json.dumps(GOOD).encode().replace(b'"fine"', text).replace(b'"note"', rb'"\u006eot\u0065"')
    assert plain(event)["note"] == expected


def test_an_upper_case_uuid_is_plain_and_becomes_lower_case() -> None:
    """A UUID with upper-case letters is the same UUID."""
    assert plain(json.dumps({**GOOD, "id": GOOD["id"].upper()}).encode()) == ROW


@pytest.mark.parametrize(
    "ignored",
    [
        '{"a": [1, {"b": [[], {}, [{}]]}, "]}", null], "c": {"key": 9}}',
        "[[[[" * 15 + "]]]]" * 15,
        "[ 1 , 2.5e-7 , -0 , true , false , null ]",
        "9" * 3000,
        "0.1000000000000000055511151231257827021181583404541015625",
        "null",
        r'"half \ud800 of a pair"',
        '"%s"' % ("long " * 1000),
    ],
    ids=lambda text: text[:30],
)
def test_what_is_ignored_may_be_anything(ignored: str) -> None:
    """An event is plain whatever is in the fields that the file does not name."""
    event = json.dumps(GOOD)
    assert plain(event.replace("{", f'{{"first": {ignored}, ', 1).encode()) == ROW
    assert plain(event.replace("}", f', "last": {ignored}}}').encode()) == ROW


def test_numbers_with_many_digits_are_plain() -> None:
    """Integers of 64 bits, and numbers that take more than one rounding, are read without the careful reader."""
    for number in (9223372036854775807, -9223372036854775807, 1234567890123456789):
        assert plain(json.dumps({**GOOD, "key": number}).encode())["key"] == number
    for level in (0.30000000000000004, 1.7976931348623157e308, 5e-324, -2.2250738585072014e-308, 0.1 + 0.7):
        assert repr(plain(json.dumps({**GOOD, "level": level}).encode())["level"]) == repr(level)


TEXTS = st.text(st.sampled_from('ab/"\\\n\x00é商😀\ud800\udc00'), max_size=6) | st.text(max_size=3)
NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS | st.sampled_from([*FIELDS]), inner, max_size=3),
    max_leaves=8,
)
TIMES = st.builds(
    "{}-{}-{}{}{}:{}:{}{}{}".format,
    st.sampled_from(["2026", "2024", "1000", "0999", "9999", "0000", "1969"]),
    st.sampled_from(["01", "02", "12", "13", "00"]),
    st.sampled_from(["01", "28", "29", "31", "32"]),
    st.sampled_from(["T", "T", "T", " ", "t"]),
    st.sampled_from(["00", "23", "24", "3"]),
    st.sampled_from(["00", "59", "60"]),
    st.sampled_from(["00", "59", "60", "5"]),
    st.sampled_from(["", "", "."]) | st.integers(0, 10**11).map(".{}".format),
    st.sampled_from(["Z", "", "z", "+01:00", "-23:59", "+24:00", "+0130", "-02", "+01:60", "+1", "+01:0", " Z", "Z "]),
)
VALUES = {
    "id": st.uuids().map(str) | st.uuids().map(lambda each: str(each).upper()),
    "key": st.integers(-(2**64), 2**64),
    "count": st.integers(-1, 2**33),
    "level": st.floats(),
    "note": TEXTS | st.builds(lambda each, length: each * length, st.sampled_from("a\n😀"), st.integers(254, 256)),
    "at": TIMES,
}
CHANGES = st.fixed_dictionaries({}, optional={name: good | NESTED for name, good in VALUES.items()})
RANDOM = st.randoms(use_true_random=False)
EXTRA = st.dictionaries(TEXTS, NESTED, max_size=3)


@given(CHANGES, EXTRA, st.sets(st.sampled_from([*FIELDS]), max_size=1), RANDOM)
def test_events_in_any_form_are_read_as_the_careful_reader_does(
    changes: dict[str, Any], extra: dict[str, Any], gone: set[str], random: Random
) -> None:
    """The scanner and the careful reader return the same rows or reasons, whatever is written and however."""
    event = {name: value for name, value in {**GOOD, **extra, **changes}.items() if name not in gone}
    assert_read_alike(READERS, written(event, random).encode(errors="surrogatepass"))


@given(CHANGES, EXTRA, RANDOM, st.integers(0), st.binary(max_size=2) | st.sampled_from(list(b'{}[]",:\\u0eE.-')))
def test_damaged_events_are_read_as_the_careful_reader_does(
    changes: dict[str, Any], extra: dict[str, Any], random: Random, place: int, damage: bytes | int
) -> None:
    """Whatever byte of an event is lost, put in or replaced, both readers agree."""
    text = written({**GOOD, **extra, **changes}, random).encode(errors="surrogatepass")
    at = place % len(text)
    by = damage if isinstance(damage, bytes) else bytes([damage])
    for spoilt in (text[:at] + by + text[at + 1 :], text[:at] + by + text[at:], text[:at]):
        assert_read_alike(READERS, spoilt, text)
