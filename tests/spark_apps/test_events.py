"""Events are read as the schema says; one that cannot be read is set aside with a reason and harms no other."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from spark_apps.events import parse

GOOD: dict[str, Any] = {
    "event_id": "01890000-0000-7000-8000-000000000001",
    "product_id": 7,
    "quantity": 2,
    "store_id": 3,
    "sold_at": "2026-01-02T03:04:05.678Z",
}


def batch(*values: bytes | None) -> pa.Array:
    """Kafka values as Spark hands them over."""
    return pa.array(values, pa.binary())


def event(**changed: object) -> bytes:
    """A good event but for what is changed."""
    return json.dumps({**GOOD, **changed}).encode()


def test_a_good_batch_is_read_whole() -> None:
    """Every field, in its type."""
    parsed = parse(batch(event(), event(product_id=8)))
    assert parsed.rejected == []
    assert parsed.readable.to_pylist() == [0, 1]
    assert parsed.events["product_id"].to_pylist() == [7, 8]
    assert [str(moment) for moment in parsed.events["sold_at"].to_pylist()] == ["2026-01-02 03:04:05.678000"] * 2


def test_an_extra_field_does_no_harm() -> None:
    """Producers may know more than we do."""
    assert parse(batch(event(colour="red"))).rejected == []


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"hello",
        event()[:40],
        b"[1]",
        b"\xff\xfe",
        event(quantity="two"),
        event(quantity=-1),
        event(quantity=2**32),
        event(quantity=True),
        event(store_id=None),
        event(product_id="seven"),
        event(product_id=7.5),
        event(event_id="no id"),
        event(sold_at="2026-13-01T00:00:00Z"),
        event(sold_at=5),
        json.dumps({name: value for name, value in GOOD.items() if name != "quantity"}).encode(),
    ],
    ids=lambda value: str(value)[:60],
)
def test_an_unreadable_event_is_set_aside_between_good_ones(value: bytes | None) -> None:
    """Its place and the reason are known; its neighbours are read as if it were not there."""
    parsed = parse(batch(event(product_id=1), value, event(product_id=3)))
    ((place, reason),) = parsed.rejected
    assert place == 1
    assert reason
    assert parsed.readable.to_pylist() == [0, 2]
    assert parsed.events["product_id"].to_pylist() == [1, 3]


def test_a_null_key_is_an_event_without_a_match_not_a_bad_one() -> None:
    """It stays visible as unmatched."""
    parsed = parse(batch(event(product_id=None)))
    assert parsed.rejected == []
    assert parsed.events["product_id"].to_pylist() == [None]
