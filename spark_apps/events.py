"""Sales events as they come from Kafka: JSON bytes to Arrow columns, and a reason for those that cannot be read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import pyarrow as pa
from pyarrow import compute
from pyarrow import json as arrow_json

SCHEMA = pa.schema(
    [
        ("event_id", pa.string()),
        ("product_id", pa.int64()),
        ("quantity", pa.int64()),
        ("store_id", pa.int64()),
        ("sold_at", pa.timestamp("ms")),
    ]
)
LARGEST = 2**32 - 1  # what quantity and store_id may be: the warehouse's INT UNSIGNED


@dataclass(frozen=True)
class Parsed:
    """A batch, told apart.

    Attributes:
        events: the readable ones' columns.
        readable: their places in the batch.
        rejected: the places of the others, each with the reason.
    """

    events: pa.Table
    readable: pa.Array
    rejected: list[tuple[int, str]]


def parse(values: pa.Array) -> Parsed:
    """Parse a batch of Kafka values: all at once, or one by one when one of them spoils the batch."""
    try:
        events = _parse_together(values)
    except (pa.ArrowInvalid, ValueError):
        return _parse_apart(values)
    return Parsed(events, pa.array(range(len(values)), pa.int64()), [])


def _parse_together(values: pa.Array) -> pa.Table:
    if values.null_count:
        raise ValueError("a message without a value")
    lines = b"\n".join(values.to_pylist())
    options = arrow_json.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="ignore")
    table = arrow_json.read_json(pa.py_buffer(lines), arrow_json.ReadOptions(use_threads=False), options)
    table = table.select(SCHEMA.names)
    if len(table) != len(values) or any(table[name].null_count for name in SCHEMA.names):
        raise ValueError("an event is empty, spread over lines, or lacks a field")
    for name in ("quantity", "store_id"):
        bounds = compute.min_max(table[name]).as_py()
        if bounds["min"] < 0 or bounds["max"] > LARGEST:
            raise ValueError(f"{name} is out of range")
    for event_id in table["event_id"].to_pylist():
        UUID(event_id)
    return table


def _parse_apart(values: pa.Array) -> Parsed:
    rows, readable, rejected = [], [], []
    for place, value in enumerate(values.to_pylist()):
        try:
            rows.append(_parse_one(value))
            readable.append(place)
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as problem:
            rejected.append((place, f"{type(problem).__name__}: {problem}"[:200]))
    return Parsed(pa.Table.from_pylist(rows, SCHEMA), pa.array(readable, pa.int64()), rejected)


def _parse_one(value: bytes | None) -> dict[str, object]:
    if not value:
        raise ValueError("empty")
    event = json.loads(value)
    if not isinstance(event, dict):
        raise TypeError("not a JSON object")
    key = event.get("product_id")
    if key is not None and type(key) is not int:
        raise TypeError(f"product_id must be a whole number, got {key!r}")
    for name in ("quantity", "store_id"):
        if type(event[name]) is not int or not 0 <= event[name] <= LARGEST:
            raise ValueError(f"{name} must be a whole number of 0 to {LARGEST}, got {event[name]!r}")
    sold_at = datetime.fromisoformat(event["sold_at"])
    return {
        "event_id": str(UUID(event["event_id"])),
        "product_id": key,
        "quantity": event["quantity"],
        "store_id": event["store_id"],
        "sold_at": sold_at.replace(tzinfo=None),
    }
