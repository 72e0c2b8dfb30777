"""What tests of the reader share: reading a few events, with the scanner and by the careful reader alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyarrow as pa
import pytest

from spark_apps.events.reader import EventReader
from spark_apps.pipeline.event_field import EventField

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from random import Random

FIRST_OFFSET = 100


class CarefulReader(EventReader):
    """Reads every event one by one, as if none were plain."""

    def _scan(self, values: pa.Array, _: Mapping[str, pa.Array]) -> tuple[np.ndarray, list[pa.Array]]:
        return np.zeros(len(values), np.bool_), [pa.array([], field.type) for field in list(self.schema)[2:]]


def read(reader: EventReader, *values: bytes | None) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """Read events from FIRST_OFFSET on; return the readable ones as rows, and the others' reasons by place."""
    offsets = pa.array(range(FIRST_OFFSET, FIRST_OFFSET + len(values)), pa.int64())
    batch = reader.read(pa.array([4] * len(values), pa.int32()), offsets, pa.array(values, pa.binary()))
    batch.events.validate(full=True)
    return batch.events.to_pylist(), dict(batch.rejected)


def refuse(*_: object) -> NoReturn:
    """Fail: the careful reader was asked."""
    pytest.fail("not plain")


def as_fields(said: Mapping[str, Any]) -> dict[str, EventField]:
    """Return fields as a pipeline's file says them."""
    return {name: EventField.model_validate(value) for name, value in said.items()}


def pair(fields: Mapping[str, EventField], key: Iterable[str]) -> tuple[EventReader, EventReader]:
    """Return the whole reader, and the careful one alone."""
    return EventReader(fields, key), CarefulReader(fields, key)


def assert_read_alike(readers: tuple[EventReader, EventReader], *values: bytes) -> None:
    """Compare the whole reader, which tries the scanner first, with the careful reader alone."""
    whole, careful = (repr(read(reader, *values)) for reader in readers)  # -0.0 is not 0.0
    assert whole == careful


def written(value: Any, random: Random) -> str:  # noqa: ANN401  # JSON
    """Write a value as JSON, with escapes and white space here and there."""

    def space() -> str:
        return random.choice(("", "", "", " ", "\n", "\t \r"))

    def joined(items: list[str], brackets: str) -> str:
        return brackets[0] + space() + ",".join(f"{space()}{item}{space()}" for item in items) + brackets[1]

    match value:
        case str():
            return f'"{"".join(_character(each, random) for each in value)}"'
        case dict():
            pairs = [f"{written(name, random)}{space()}:{space()}{written(of, random)}" for name, of in value.items()]
            return joined(pairs, "{}")
        case list():
            return joined([written(each, random) for each in value], "[]")
        case _:
            return json.dumps(value)


def _character(character: str, random: Random) -> str:
    units = np.frombuffer(character.encode("utf-16-le", "surrogatepass"), "<u2")
    itself = json.dumps(character, ensure_ascii=False)[1:-1]
    ways = (
        itself,
        itself,
        json.dumps(character)[1:-1],
        "".join(f"\\u{unit:04x}" for unit in units),
        "".join(f"\\u{unit:04X}" for unit in units),
        "\\/" if character == "/" else itself,
    )
    return random.choice(ways)
