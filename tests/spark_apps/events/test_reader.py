"""Events are read by the pipeline's fields; an unreadable one is rejected with a reason, and the others are read."""

from __future__ import annotations

import ctypes
import json
import mmap
from datetime import datetime
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_apps.events.reader import EventReader
from spark_apps.pipeline.definition import read_pipeline
from tests.spark_apps.application import PIPELINES
from tests.spark_apps.events.reading import CarefulReader, as_fields

SALES_FIELDS, SALES_KEY = read_pipeline("sales").source.fields, ["product_id"]
READER = EventReader(SALES_FIELDS, SALES_KEY)
READINGS_FIELDS, READINGS_KEY = read_pipeline("readings", PIPELINES).source.fields, ["station"]
READINGS = EventReader(READINGS_FIELDS, READINGS_KEY)
GOOD: dict[str, Any] = {
    "event_id": "01890000-0000-7000-8000-00000000000a",
    "product_id": 7,
    "quantity": 2,
    "store_id": 3,
    "sold_at": "2026-01-02T03:04:05.678Z",
}
READING: dict[str, Any] = {
    "station": "Ljósafoss",
    "celsius": -7.25,
    "wind": 12,
    "remark": "",
    "taken_at": "2026-01-02T03:04:05.678Z",
    "event": "01890f3c-1f2e-7cc3-98c4-dc0c0c07398f",
}
PLAIN = json.dumps(
    READING, ensure_ascii=False
).encode()  # json.dumps would escape the other letters, and then the event is not plain


def read(*values: bytes | None, reader: EventReader = READER) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """Read events from offset 100 on; return the readable ones as rows, and the others' reasons by place."""
    count = len(values)
    offsets = pa.array(range(100, 100 + count), pa.int64())
    batch = reader.read(pa.array([4] * count, pa.int32()), offsets, pa.array(values, pa.binary()))
    return batch.events.to_pylist(), dict(batch.rejected)


def event(**changed: object) -> bytes:
    """Return a good event with changes."""
    return json.dumps({**GOOD, **changed}).encode()


def row(**changed: object) -> dict[str, Any]:
    """Return the row of a good event, with changes."""
    moment = datetime(2026, 1, 2, 3, 4, 5, 678000)  # noqa: DTZ001 - the warehouse's times are UTC without a time zone
    return {"kafka_partition": 4, "kafka_offset": 100, **GOOD, "sold_at": moment, **changed}


def test_a_good_batch_is_read_whole_with_its_positions() -> None:
    """All events of a good batch are read with their positions, and every field has its type."""
    rows, rejected = read(event(), event(product_id=8))
    assert rejected == {}
    assert rows == [row(), row(product_id=8, kafka_offset=101)]


def test_an_empty_batch_has_no_events() -> None:
    """A partition without messages is read as no events."""
    assert read() == ([], {})


def test_a_slice_of_a_batch_is_read_as_itself() -> None:
    """A slice of an Arrow array, which begins in the middle of its buffer, is read correctly."""
    values = pa.array([b"bad", event(), event(product_id=8), b"bad"], pa.binary())[1:3]
    batch = READER.read(pa.array([4, 4], pa.int32()), pa.array([100, 101], pa.int64()), values)
    assert batch.events.to_pylist() == [row(), row(product_id=8, kafka_offset=101)]


@pytest.mark.parametrize(
    "text",
    [
        event(colour="red", size=3, new=True, old=False, none=None),
        event(nested={"a": [1, {"b": 2}]}),
        event(name='quotes " backslash \\ newline \n tab \t'),
        event(name="schön 商品"),
        json.dumps(GOOD, indent=2).encode(),
        json.dumps(dict(reversed(GOOD.items())), separators=(",", ":")).encode() + b"\n",
        event(event_id=GOOD["event_id"].upper()),
        event(sold_at="2026-01-02T04:04:05.678+01:00"),
        event(sold_at="2026-01-02T03:04:05.678999Z"),
        event().replace(b"event_id", b"event\\u005fid"),
    ],
    ids=lambda text: text.decode()[-40:],
)
def test_other_forms_of_the_same_event_are_read_the_same(text: bytes) -> None:
    """Unknown fields, white space, order, escapes and time zone do not change the row that is read."""
    assert read(text) == ([row()], {})


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "no value"),
        (b"", "an empty value"),
        (b"hello", "not JSON"),
        (event()[:40], "not JSON"),
        (event() + b"}", "not JSON"),
        (event()[:-1] + b",}", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"5", "not a JSON object"),
        (b"{}", "event_id: missing"),
        (b"\xff\xfe", "not UTF-8: byte 0"),
        (event(name="x").replace(b'"x"', b'"\xc3("'), "not UTF-8"),
        (json.dumps(GOOD).encode("utf-16"), "not UTF-8"),
        (b"[" * 100_000, "not JSON that we read: nested too deeply"),
        (event()[:-1] + b', "quantity": 5}', "quantity: there twice"),
        (event(quantity="two"), "quantity: must be a whole number of 0 to 4294967295, got 'two'"),
        (event(quantity=-1), "quantity: must be a whole number"),
        (event(quantity=2**32), "quantity: must be a whole number"),
        (event(quantity=2.0), "quantity: must be a whole number"),
        (event(quantity=True), "quantity: must be a whole number"),
        (event(quantity=float("nan")), "not JSON: NaN is no number"),
        (event(store_id=None), "store_id: must be a whole number"),
        (event(store_id=[1]), "store_id: must be a whole number"),
        (event(product_id="seven"), "product_id: must be a whole number"),
        (event(product_id=7.5), "product_id: must be a whole number"),
        (event(product_id=2**63), "product_id: must be a whole number"),
        (event().replace(b": 7,", b": 07,"), "not JSON"),
        (event().replace(b": 7,", b": " + b"7" * 5000 + b","), "not JSON that we read"),
        (event(event_id="no id"), "event_id: must be a UUID"),
        (event(event_id="{" + GOOD["event_id"][2:] + "}"), "event_id: must be a UUID"),
        (event(event_id="00000000-0000-f000-7000-000000000000"), "event_id: must be a UUID that MariaDB takes"),
        (event(sold_at="2026-13-01T00:00:00Z"), "sold_at: must be a time"),
        (event(sold_at="2026-02-29T00:00:00Z"), "sold_at: must be a time"),
        (event(sold_at="0999-12-31T23:59:59Z"), "sold_at: must be a time"),
        (event(sold_at="9999-12-31T23:59:59-01:00"), "sold_at: must be a time"),
        (event(sold_at="2026-01-01T24:00:00Z"), "sold_at: must be a time"),
        (event(sold_at="2026-01-01T10:00:00+01:60"), "sold_at: must be a time"),
        (event(sold_at="2026-01-01T00:00:00"), "sold_at: must be a time"),
        (event(sold_at="2026-W01"), "sold_at: must be a time"),
        (event(sold_at=5), "sold_at: must be a time"),
        (json.dumps({k: v for k, v in GOOD.items() if k != "quantity"}).encode(), "quantity: missing"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_an_unreadable_event_is_rejected_between_good_ones(value: bytes | None, reason: str) -> None:
    """An unreadable event is rejected with its position and reason; the events beside it are read."""
    rows, rejected = read(event(product_id=1), value, event(product_id=3))
    assert rows == [row(product_id=1), row(product_id=3, kafka_offset=102)]
    assert list(rejected) == [1]
    assert rejected[1].startswith(reason)
    assert len(rejected[1]) <= 200


def test_an_event_with_a_null_key_is_readable() -> None:
    """An event with a null key is read, and becomes an unmatched event."""
    assert read(event(product_id=None)) == ([row(product_id=None)], {})


def test_a_value_of_ten_megabytes_is_one_bad_event() -> None:
    """A value of ten megabytes is rejected, and the events beside it are read."""
    rows, rejected = read(event(), b'{"event_id": "' + b"x" * 10_000_000 + b'"}', event())
    assert len(rows) == 2
    assert "event_id: must be a UUID" in rejected[1] or "missing" in rejected[1]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(GOOD["sold_at"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=3,
)
NAMES = st.sampled_from([*GOOD, *READING, "other"])


CAREFUL = {
    id(READER): CarefulReader(SALES_FIELDS, SALES_KEY),
    id(READINGS): CarefulReader(READINGS_FIELDS, READINGS_KEY),
}


def assert_both_read_the_same(reader: EventReader, text: bytes) -> None:
    """Compare the whole reader, which tries the scanner first, with the careful reader alone."""
    assert repr(read(text, reader=reader)) == repr(read(text, reader=CAREFUL[id(reader)]))  # -0.0 is not 0.0


@given(
    of=st.sampled_from([(READER, GOOD), (READINGS, READING)]),
    changes=st.dictionaries(NAMES, JSON_VALUES, max_size=3),
    gone=st.sets(NAMES, max_size=1),
    spoilt=st.none() | st.tuples(st.integers(0, 300), st.binary(max_size=2)),
    compact=st.booleans(),
    ascii_only=st.booleans(),
)
def test_the_scanner_reads_events_as_the_careful_reader_does(
    of: tuple[EventReader, dict[str, Any]],
    changes: dict[str, Any],
    gone: set[str],
    spoilt: tuple[int, bytes] | None,
    compact: bool,  # noqa: FBT001
    ascii_only: bool,  # noqa: FBT001
) -> None:
    """The scanner and the careful reader return the same result for any event, also a damaged one."""
    reader, good = of
    content = {name: value for name, value in {**good, **changes}.items() if name not in gone}
    shown = json.dumps(content, separators=(",", ":") if compact else None, ensure_ascii=ascii_only)
    text = shown.encode(errors="surrogatepass")
    if spoilt:
        at = spoilt[0] % len(text)
        text = text[:at] + spoilt[1] + text[at + 1 :]
    assert_both_read_the_same(reader, text)


@pytest.mark.parametrize("place", range(36))
def test_a_uuid_has_its_dashes_and_digits_where_they_belong(place: int) -> None:
    """A UUID with a wrong character at any place is unreadable."""
    for other in "x-0G/:`g":
        text = GOOD["event_id"][:place] + other + GOOD["event_id"][place + 1 :]
        assert_both_read_the_same(READER, event(event_id=text))


def test_names_are_compared_whole() -> None:
    """Field names of equal length that begin alike are different fields."""
    reader = EventReader(as_fields(dict.fromkeys(("abcdefgh12345678", "abcdefgh12345679", "a"), "int64")), [])
    good = {"abcdefgh12345679": 2, "a": 3, "abcdefgh12345678": 1}
    (row,), rejected = read(json.dumps(good).encode(), reader=reader)
    assert (rejected, {name: row[name] for name in good}) == ({}, good)
    for wrong in ("abcdefgh1234567", "abcdefgh1234567x", "abcdefgh12345678\u0000"):
        spoilt = {wrong: 1, "abcdefgh12345679": 2, "a": 3}
        assert read(json.dumps(spoilt).encode(), reader=reader)[1] == {0: "abcdefgh12345678: missing"}


WHOLE = json.dumps(GOOD, separators=(",", ":")).encode()


def test_nothing_is_read_beyond_the_batch() -> None:
    """The reader reads no byte beyond the batch; the memory page behind it is protected, so a read would crash."""
    libc, size = ctypes.CDLL(None), mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * size)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert libc.mprotect(ctypes.c_void_p(address + size), size, 0) == 0
    for length in range(1, len(WHOLE) + 1):
        for text in (WHOLE[:length], WHOLE[:length] + b"7", WHOLE[:length] + b'"'):
            memory[size - len(text) : size] = text
            data = pa.foreign_buffer(address + size - len(text), len(text))
            offsets = pa.py_buffer(np.array([0, len(text)], np.int32))
            values = pa.BinaryArray.from_buffers(pa.binary(), 1, [None, offsets, data])
            batch = READER.read(pa.array([4], pa.int32()), pa.array([100], pa.int64()), values)
            assert (batch.events.to_pylist(), dict(batch.rejected)) == read(text)


BEHIND = st.sampled_from([b"0", b"5", b'"', b"}", b'":1}', b'",', b"1.5}", b"e5}", b" ", b"\xa9", WHOLE])


@given(st.integers(0, len(WHOLE)), st.lists(BEHIND, max_size=3), st.lists(BEHIND, max_size=2))
def test_an_event_is_read_the_same_whatever_stands_behind_it(
    length: int, more: list[bytes], next_ones: list[bytes]
) -> None:
    """The bytes of the next event, which follow without a gap, do not change how an event is read."""
    texts = [WHOLE[:length] + b"".join(more), *next_ones]
    rows, rejected = read(*texts)
    alone = [read(text) for text in texts]
    assert rejected == {place: reasons[0] for place, (_, reasons) in enumerate(alone) if reasons}
    expected = [{**row, "kafka_offset": 100 + place} for place, (rows, _) in enumerate(alone) for row in rows]
    assert rows == expected


DIGITS = st.text("0123456789", max_size=20)


@given(
    sign=st.sampled_from(["", "-", "+"]),
    whole=st.sampled_from(["0", "1", "9007199254740993", ""]) | DIGITS,
    fraction=st.just("") | DIGITS.map(".{}".format),
    exponent=st.just("") | st.tuples(st.sampled_from(["e", "E", "e+", "e-"]), DIGITS.map(lambda d: d[:3])).map("".join),
)
def test_a_number_is_the_nearest_double(sign: str, whole: str, fraction: str, exponent: str) -> None:
    """A number of any length is read as the nearest double; what is not a JSON number is rejected."""
    number = f"{sign}{whole}{fraction}{exponent}".encode()
    assert_both_read_the_same(READINGS, PLAIN.replace(b"-7.25", number))


def test_usual_numbers_are_the_nearest_doubles() -> None:
    """Numbers as programs print them, rounded or with all digits, are read as the nearest doubles."""
    random = np.random.default_rng(1)
    numbers = [value for scale in (1e-9, 1.0, 1e6) for value in (random.normal(0, scale, 2000)).tolist()]
    shown = [repr(value) for value in numbers] + [f"{value:.{n % 19}f}" for n, value in enumerate(numbers)]
    texts = [PLAIN.replace(b"-7.25", number.encode()) for number in shown]
    rows, rejected = read(*texts, reader=READINGS)
    assert not rejected
    by_place = {row["kafka_offset"] - 100: row["celsius"] for row in rows}
    assert [by_place[place] for place in range(len(shown))] == [float(number) for number in shown]


def test_text_is_decoded_as_python_decodes_utf8() -> None:
    """The reader accepts and refuses each pair of first and second UTF-8 bytes as Python does."""
    seconds = (0x00, 0x22, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF)
    for lead in range(256):
        sequences = [
            bytes([lead, second, *rest]) for second in seconds for rest in ((), (0x80,), (0xBF, 0xBF), (0x80, 0x41))
        ]
        texts = [PLAIN.replace(b'"remark": "', b'"remark": "' + each) for each in sequences]
        assert read(*texts, reader=READINGS) == read(*texts, reader=CAREFUL[id(READINGS)])


@pytest.mark.parametrize("character", ["x", "é", "商", "😀"])
def test_the_longest_text_is_counted_in_characters(character: str) -> None:
    """The limit of a text counts characters, as the warehouse does."""
    fits, exceeds = ({**READING, "remark": character * count} for count in (255, 256))
    rows, rejected = read(*(json.dumps(each, ensure_ascii=False).encode() for each in (fits, exceeds)), reader=READINGS)
    assert [row["remark"] for row in rows] == [character * 255]
    assert list(rejected) == [1]


def test_events_keep_their_order_whichever_reader_reads_them() -> None:
    """Events keep their order if some need the careful reader and unreadable ones are left out."""
    escaped = json.dumps({**READING, "remark": "\n"}).encode()
    rows, rejected = read(PLAIN, escaped, b"{", PLAIN, escaped, PLAIN, reader=READINGS)
    assert [(row["kafka_offset"], row["remark"]) for row in rows] == [
        (100, ""), (101, "\n"), (103, ""), (104, "\n"), (105, "")
    ]  # fmt: skip
    assert list(rejected) == [2]


def test_plain_events_do_not_need_the_careful_reader() -> None:
    """The scanner reads the generator's events, and also fractions and letters of any language."""

    def refuse(*_: object) -> NoReturn:
        pytest.fail("not plain")

    sales = EventReader(SALES_FIELDS, SALES_KEY, refuse)
    assert len(read(*[event(product_id=int(key)) for key in np.arange(1000)], reader=sales)[0]) == 1000
    numbers = (0.0, -0.0, 21.5, -0.001, 1e22, 1e-7, 1234567.890625)
    readings = [READING | {"celsius": number, "remark": "ø 商品 😀 \x7f"} for number in numbers]
    scanned = EventReader(READINGS_FIELDS, READINGS_KEY, refuse)
    rows, _ = read(*[json.dumps(each, ensure_ascii=False).encode() for each in readings], reader=scanned)
    assert repr([(row["celsius"], row["remark"]) for row in rows]) == repr([(n, "ø 商品 😀 \x7f") for n in numbers])
