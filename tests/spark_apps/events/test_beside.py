"""Fields from a message's key, headers and timestamp are read as the same values in an event are."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_apps.events.reader import EventReader
from tests.spark_apps.events.reading import as_fields, pair, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

FIELDS = as_fields(
    {
        "id": {"type": "int64", "from": "key"},
        "trace": {"type": "string", "from": "header:trace", "default": "none"},
        "size": {"type": "decimal(6, 2)", "from": "header:size", "nullable": True},
        "at": {"type": "timestamp", "from": "header:at", "unit": "ms", "nullable": True},
        "level": {"type": "float64", "from": "header:level", "nullable": True},
        "who": {"type": "uuid", "from": "header:who", "nullable": True},
        "received": {"type": "timestamp", "from": "timestamp"},
        "count": "int64",
    }
)
WHO = "01890000-0000-7000-8000-00000000000A"
GOOD = {"key": b"7", "header:trace": "tracé".encode(), "header:size": b"1.5", "header:at": b"1767323045678",
        "header:level": b"0.30000000000000004", "header:who": WHO.encode()}  # fmt: skip


def read(reader: EventReader, *messages: Mapping[str, bytes | None], value: bytes = b'{"count": 3}') -> tuple[Any, ...]:
    """Read messages that have these keys and headers."""
    count = len(messages)
    beside = {origin: pa.array([each.get(origin) for each in messages], pa.binary()) for origin in GOOD}
    moments = [datetime(2026, 1, 2, 3, 4, 5, 999000, UTC)] * count
    beside["timestamp"] = pa.array(moments, pa.timestamp("us", "UTC"))
    one = (
        pa.array([0] * count, pa.int32()),
        pa.array(range(count), pa.int64()),
        pa.array([value] * count, pa.binary()),
    )
    batch = reader.read(*one, beside)
    batch.events.validate(full=True)
    return batch.events.to_pylist(), batch.rejected


def test_keys_headers_and_timestamps_are_plain() -> None:
    """Texts of keys and headers become values of their field's type; missing ones are null or the default."""
    (full, empty), _ = read(EventReader(FIELDS, ["id"], refuse), GOOD, {})
    assert (full["id"], full["trace"], str(full["size"]), full["level"]) == (7, "tracé", "1.50", 0.30000000000000004)
    assert full["who"] == WHO.lower()
    assert full["at"] == datetime(2026, 1, 2, 3, 4, 5, 678000)  # noqa: DTZ001
    assert full["received"] == datetime(2026, 1, 2, 3, 4, 5, 999000)  # noqa: DTZ001
    assert (empty["id"], empty["trace"], empty["size"], empty["at"], empty["count"]) == (None, "none", None, None, 3)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"key": b"seven"}, "id: must be a whole number of -9223372036854775808 to 9223372036854775807, got b'seven'"),
        ({"key": b"\xff"}, "id: not UTF-8: byte 0"),
        ({"header:trace": b"x" * 256}, "trace: must be a text of at most 255 characters"),
        ({"header:size": b"1.234"}, "size: must be a number with at most 4 digits before the point and 2 behind it"),
        ({"header:level": b"1e999"}, "level: must be a finite number"),
    ],
)
def test_a_bad_key_or_header_rejects_its_event_only(changed: dict[str, bytes], reason: str) -> None:
    """The reason of a rejected event names the field that is read from a key or header."""
    rows, ((place, said),) = read(EventReader(FIELDS, ["id"]), GOOD, {**GOOD, **changed}, GOOD)
    assert (len(rows), place) == (2, 1)
    assert said.startswith(reason)


def test_a_field_from_the_key_is_required_unless_it_is_the_pipelines_key_or_optional() -> None:
    """A message without a key is rejected if a field needs it."""
    assert read(EventReader(FIELDS, []), {})[1] == [(0, "id: missing")]


TEXTS = st.none() | st.binary(max_size=4) | st.text('0123456789.-+eE"\\ é', max_size=20).map(str.encode)
READERS = pair(FIELDS, ["id"])


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(GOOD, TEXTS)), st.sampled_from([b'{"count": 3}', b"{}"]))
def test_texts_are_read_as_the_careful_reader_does(changed: dict[str, bytes | None], value: bytes) -> None:
    """The scanner and the careful reader agree about every key and header."""
    whole, careful = (repr(read(reader, {**GOOD, **changed}, GOOD, value=value)) for reader in READERS)
    assert whole == careful
