"""The enriched topic's messages are JSON for all values, and contain each event's position."""

from __future__ import annotations

import json
import math
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from spark_apps.enriching.messages import messages
from spark_apps.pipeline.definition import TOPIC_POSITION

ROWS = pa.table(
    {
        "kafka_partition": pa.array([1, 1, 2], pa.int32()),
        "kafka_offset": pa.array([7, 8, 0], pa.int64()),
        "name": ['quote " backslash \\ newline \n', None, "商品 😀"],
        "number": [0.1, math.inf, math.nan],
        "at": pa.array([datetime(2026, 1, 2, 3, 4, 5, 678000), None, datetime(1969, 1, 1)], pa.timestamp("ms")),  # noqa: DTZ001 - UTC
    }
)


def test_a_message_is_json_with_its_rows_values() -> None:
    """A message has its row's values; infinity and NaN become null, because JSON does not have them."""
    made = messages(3, ["name"], ["name", "number", "at"], ROWS)
    assert made["key"].to_pylist() == ROWS["name"].to_pylist()
    assert [json.loads(value, parse_constant=pytest.fail) for value in made["value"].to_pylist()] == [
        {"name": ROWS["name"][0].as_py(), "number": 0.1, "at": "2026-01-02T03:04:05.678Z"},
        {"name": None, "number": None, "at": None},
        {"name": "商品 😀", "number": None, "at": "1969-01-01T00:00:00.000Z"},
    ]


def test_every_type_that_master_data_can_have_is_json() -> None:
    """Numbers keep all their digits in JSON; a type that JSON does not have becomes text."""
    columns = {
        "day": (pa.date32(), date(2026, 2, 28), "2026-02-28"),
        "amount": (pa.decimal128(38, 2), Decimal("-1234567890123456789.50"), Decimal("-1234567890123456789.50")),
        "rate": (pa.decimal128(38, 12), Decimal("0.000000000001"), Decimal("0.000000000001")),
        "large": (pa.uint64(), 2**64 - 1, 2**64 - 1),
        "small": (pa.int8(), -1, -1),
        "single": (pa.float32(), 0.5, 0.5),
        "moment": (pa.timestamp("us"), datetime(2026, 1, 2, 3, 4, 5, 6), "2026-01-02T03:04:05.000006Z"),  # noqa: DTZ001 - UTC
    }
    rows = {name: pa.array([value, None, value], kind) for name, (kind, value, _) in columns.items()}
    made = messages(3, ["small"], list(columns), pa.table({**rows, **{name: ROWS[name] for name in TOPIC_POSITION}}))
    shown = [json.loads(value, parse_float=Decimal) for value in made["value"].to_pylist()]
    expected = {name: json for name, (_, _, json) in columns.items()}
    assert shown == [expected, dict.fromkeys(columns), expected]


def test_a_message_says_where_its_event_came_from() -> None:
    """A message has the event's source, partition and offset, so that a consumer can drop duplicates."""
    made = messages(3, ["name"], ["number"], ROWS)["headers"].to_pylist()
    assert [[(each["key"], int(each["value"])) for each in headers] for headers in made] == [
        [("source", 3), ("partition", partition), ("offset", offset)] for partition, offset in [(1, 7), (1, 8), (2, 0)]
    ]
