"""The form of events: JSON text, identifiers, Arrow columns, malformed events."""

import json
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator import StreamSettings
from generator.encode import LONGEST_EVENT, MALFORMED
from generator.events import SCHEMA, Events, make_events
from generator.values import MALFORMED_KINDS, recipe

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def lines_of(events: Events) -> list[bytes]:
    """Return the text of each event, as the Kafka sink cuts it."""
    text, ends = events.json_lines()
    starts = [0, *(ends[:-1] + 1).tolist()]
    assert [text[end : end + 1] for end in ends] == [b"\n"] * len(events)
    return [text[start:end] for start, end in zip(starts, ends.tolist(), strict=True)]


def one_event(number: int, product: int, quantity: int, store: int, sold_at: int, tag: int) -> Events:
    """Create a batch of one event with these values."""
    columns = [np.array([value]) for value in (number, product, quantity, store, sold_at)]
    return Events(columns[0], columns[1], columns[2], columns[3], columns[4], np.zeros(1, np.uint8), tag)


@given(
    number=st.integers(0, 2**42 - 1),
    product=st.integers(1, 2**63 - 1),
    quantity=st.integers(1, 10),
    store=st.integers(1, 100),
    sold_at=st.integers(0, 4_102_444_800_000),
    tag=st.integers(0, 2**32 - 1),
)
def test_text_is_the_json_of_the_event(
    number: int, product: int, quantity: int, store: int, sold_at: int, tag: int
) -> None:
    """The bytes are those of json.dumps; the id is a UUID 7 of the time; the time is ISO 8601 with milliseconds."""
    (line,) = lines_of(one_event(number, product, quantity, store, sold_at, tag))
    event = json.loads(line)
    moment = (EPOCH + timedelta(milliseconds=sold_at)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    expected = {
        "event_id": event["event_id"],
        "product_id": product,
        "quantity": quantity,
        "store_id": store,
        "sold_at": moment,
    }
    assert line.decode() == json.dumps(expected, separators=(",", ":"))
    identifier = uuid.UUID(event["event_id"])
    assert str(identifier) == event["event_id"]
    assert (identifier.version, identifier.variant) == (7, uuid.RFC_4122)
    assert identifier.int >> 80 == sold_at
    assert list(expected) == SCHEMA.names
    assert len(line) < LONGEST_EVENT


def test_a_batch_may_cross_days_in_any_order() -> None:
    """Times are right on leap days, at the turn of a year, and in a century year that has no leap day."""
    moments = ["2100-03-01", "2000-02-29", "2099-12-31T23:59:59.999", "1970-01-01", "2100-02-28", "2024-02-29"]
    sold_at = np.array(moments, "datetime64[ms]").astype(np.int64)
    lines = lines_of(make_events(recipe(StreamSettings(keys=10)), np.arange(len(sold_at)), sold_at, tag=0))
    assert [datetime.fromisoformat(json.loads(line)["sold_at"]).replace(tzinfo=None) for line in lines] == [
        datetime.fromisoformat(moment) for moment in moments
    ]


def test_a_batch_of_no_events_is_no_text() -> None:
    """An empty batch is an empty text, without a newline."""
    nothing = np.zeros(0, np.int64)
    text, ends = make_events(recipe(StreamSettings(keys=10)), nothing, nothing, tag=0).json_lines()
    assert (text, len(ends)) == (b"", 0)


def test_identifiers_are_unique_and_ordered_like_the_events() -> None:
    """Sorted as text, the ids keep the stream's order, also within a millisecond."""
    count = 100_000
    sold_at = 1_800_000_000_000 + np.arange(count) // 1000
    lines = lines_of(make_events(recipe(StreamSettings(keys=10)), np.arange(count), sold_at, tag=2**32 - 1))
    identifiers = [json.loads(line)["event_id"] for line in lines]
    assert len(set(identifiers)) == count
    assert identifiers == sorted(identifiers)


def test_runs_with_another_tag_share_no_identifier() -> None:
    """The run's tag makes the ids of the same times and numbers different."""
    ids = [
        {
            line[:60]
            for line in lines_of(make_events(recipe(StreamSettings(keys=10)), np.arange(9), np.zeros(9, int), tag))
        }
        for tag in (1, 2)
    ]
    assert not ids[0] & ids[1]


def test_arrow_columns_hold_what_the_text_says() -> None:
    """Row by row, Arrow and JSON have the same values."""
    sold_at = 1_800_000_000_000 + np.arange(1000) * 7
    events = make_events(recipe(StreamSettings(keys=1000)), np.arange(1000), sold_at, tag=5)
    batch = events.arrow()
    assert batch.schema == SCHEMA
    batch.validate(full=True)
    for row, line in zip(batch.to_pylist(), lines_of(events), strict=True):
        event = json.loads(line)
        event["sold_at"] = datetime.fromisoformat(event["sold_at"])
        assert row == event


def read_strictly(line: bytes) -> None:
    """Read a line as a strict consumer: raise for anything that is not an event."""
    event = json.loads(line.decode("utf-8"))
    assert list(event) == SCHEMA.names
    uuid.UUID(event["event_id"])
    assert all(type(event[name]) is int for name in ("product_id", "quantity", "store_id"))
    datetime.fromisoformat(event["sold_at"])


def test_every_kind_of_malformed_event_is_unreadable() -> None:
    """The share is the requested one, every kind occurs, and a strict consumer refuses exactly these events."""
    events = make_events(
        recipe(StreamSettings(keys=1000, malformed=0.1, seed=3)), np.arange(20_000), np.full(20_000, 10**12), tag=0
    )
    assert (events.faults > 0).mean() == pytest.approx(0.1, rel=0.1)
    assert set(events.faults) == set(range(MALFORMED_KINDS + 1))
    assert len(MALFORMED) == MALFORMED_KINDS
    refused = []
    for line in lines_of(events):
        try:
            read_strictly(line)
        except (ValueError, AssertionError):
            refused.append(True)
        else:
            refused.append(False)
    np.testing.assert_array_equal(refused, events.faults > 0)


def test_malformed_kinds_have_the_fault_of_their_name() -> None:
    """Each kind of malformed event has exactly the fault that its name states."""
    size = MALFORMED_KINDS + 1
    event = one_event(number=77, product=42, quantity=3, store=9, sold_at=1_800_000_000_000, tag=1)
    valid, *malformed = [lines_of(replace(event, faults=np.array([fault], np.uint8)))[0] for fault in range(size)]
    example = dict(zip(MALFORMED, malformed, strict=True))
    assert valid.startswith(example["truncated"])
    assert 0 < len(example["truncated"]) < len(valid)
    assert example["not_json"].startswith(b"this is not JSON")
    assert "product_id" not in json.loads(example["missing_key"])
    assert json.loads(example["null_key"])["product_id"] is None
    assert json.loads(example["text_key"])["product_id"] == "unknown"
    assert json.loads(example["text_quantity"])["quantity"] == "unknown"
    assert json.loads(example["impossible_time"])["sold_at"].startswith("2027-13-")
    with pytest.raises(UnicodeDecodeError):
        example["not_utf8"].decode()
    assert example["empty"] == b""
