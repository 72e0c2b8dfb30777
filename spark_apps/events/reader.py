"""Events as they come from Kafka: JSON bytes to Arrow columns, and a reason for each that cannot be read.

Nearly all events are plain and read by the scanner, a batch at once. The others are read carefully, one by one, so
that one bad event costs its own time and not its batch's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyarrow as pa

from spark_apps.events import scanner
from spark_apps.events.words import padded
from spark_apps.pipeline.definition import TOPIC_POSITION
from spark_apps.pipeline.fields import KINDS, InvalidValueError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

_LONGEST_REASON = 200


class UnreadableEventError(ValueError):
    """An event cannot be read; the message is the reason."""


@dataclass(frozen=True)
class Read:
    """A batch, told apart: the readable events' columns, and the places of the others with a reason each."""

    events: pa.RecordBatch
    rejected: list[tuple[int, str]]


class _Pairs(list):  # type: ignore[type-arg]
    """A JSON object, as its pairs: told apart from a JSON array."""


class EventReader:
    """Reads batches of one pipeline's events.

    Args:
        fields: name and type of each field that an event must have; others are ignored.
        nullable: the fields that may be null: an event without a key is not unreadable, it matches nothing.
    """

    def __init__(self, fields: Mapping[str, str], nullable: Iterable[str]) -> None:
        self._kinds = {name: KINDS[kind] for name, kind in fields.items()}
        self._nullable = set(nullable)
        columns = [(name, kind.arrow) for name, kind in self._kinds.items()]
        self.schema = pa.schema([(TOPIC_POSITION[0], pa.int32()), (TOPIC_POSITION[1], pa.int64()), *columns])
        encoded = [name.encode() for name in fields]
        self._names = padded(b"".join(encoded))
        self._name_offsets = np.cumsum([0, *map(len, encoded)])
        self._numbers = np.array([kind.number for kind in self._kinds.values()])
        self._may_be_null = np.array([name in self._nullable for name in fields])

    def read(self, partitions: pa.Array, offsets: pa.Array, values: pa.Array) -> Read:
        """Read a batch of Kafka values, each with its position."""
        plain, columns = self._scan(values)
        where = pa.array(plain)
        arrays = [partitions.filter(where), offsets.filter(where), *columns]
        events = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        rejected: list[tuple[int, str]] = []
        rows: list[dict[str, Any]] = []
        places: list[int] = []
        for place in np.flatnonzero(~plain).tolist():
            try:
                row = self._read_carefully(values[place].as_py())
            except UnreadableEventError as problem:
                rejected.append((place, _written(problem)))
            else:
                position = (partitions[place].as_py(), offsets[place].as_py())
                rows.append({**dict(zip(TOPIC_POSITION, position, strict=True)), **row})
                places.append(place)
        if rows:
            together = pa.concat_batches([events, pa.RecordBatch.from_pylist(rows, self.schema)])
            order = np.argsort(np.concatenate([np.flatnonzero(plain), places]), kind="stable")
            return Read(together.take(pa.array(order)), rejected)
        return Read(events, rejected)

    def _scan(self, values: pa.Array) -> tuple[np.ndarray, list[pa.Array]]:
        """Read the plain events of a batch: which they are, and their columns."""
        count, fields = len(values), len(self._kinds)
        filled = values.fill_null(b"")
        bounds = np.frombuffer(filled.buffers()[1], np.int32)[filled.offset : filled.offset + count + 1]
        data = padded(filled.buffers()[2] or b"")
        plain = np.zeros(count, np.bool_)
        numbers = np.empty((fields, count), np.int64)
        starts, ends = np.empty((fields, count), np.int32), np.empty((fields, count), np.int32)
        schema = (self._names, self._name_offsets, self._numbers, self._may_be_null)
        floats = numbers.view(np.float64)
        scanner.scan(data, bounds, *schema, plain, numbers, floats, starts, ends)
        columns = []
        taken = slice(None) if plain.all() else plain  # which needs no copy
        for field, kind in enumerate(self._kinds.values()):
            absent = starts[field, taken] < 0
            nulls = absent if absent.any() else None
            if pa.types.is_string(kind.arrow):
                columns.append(_texts(data, starts[field, taken], ends[field, taken], nulls))
            else:
                found = floats if pa.types.is_floating(kind.arrow) else numbers
                columns.append(pa.array(found[field, taken], mask=nulls).cast(kind.arrow))
        return plain, columns

    def _read_carefully(self, value: bytes | None) -> dict[str, Any]:
        """Read one event, or say why it cannot be read."""
        if not value:
            raise UnreadableEventError("no value" if value is None else "an empty value")
        given = _fields_of(value, self._kinds)
        row: dict[str, Any] = {}
        for name, kind in self._kinds.items():
            if name not in given:
                raise UnreadableEventError(f"{name}: missing")
            if given[name] is None and name in self._nullable:
                row[name] = None
                continue
            try:
                row[name] = kind.read(given[name])
            except InvalidValueError as problem:
                raise UnreadableEventError(f"{name}: {problem}, got {_shown(given[name])}") from None
        return row


def _written(problem: UnreadableEventError) -> str:
    """Return the reason as the warehouse can hold it: an event may have half a character in what is quoted of it."""
    return str(problem).encode("utf-8", "backslashreplace").decode()[:_LONGEST_REASON]


def _fields_of(value: bytes, known: Collection[str]) -> dict[str, Any]:
    """Return what an event has of the known fields; others may be there, and twice."""
    try:
        event = json.loads(value.decode("utf-8"), object_pairs_hook=_Pairs, parse_constant=_refuse_constant)
    except UnreadableEventError:
        raise
    except UnicodeDecodeError as problem:
        raise UnreadableEventError(f"not UTF-8: byte {problem.start}") from None
    except json.JSONDecodeError as problem:
        raise UnreadableEventError(f"not JSON: {problem}") from None
    except RecursionError:
        raise UnreadableEventError("not JSON that we read: nested too deeply") from None
    except ValueError as problem:  # a number of thousands of digits
        raise UnreadableEventError(f"not JSON that we read: {problem}") from None
    if not isinstance(event, _Pairs):
        raise UnreadableEventError("not a JSON object")
    given: dict[str, Any] = {}
    for name, content in event:
        if name not in known:
            continue
        if name in given:
            raise UnreadableEventError(f"{name}: there twice")
        given[name] = content
    return given


def _refuse_constant(name: str) -> NoReturn:
    raise UnreadableEventError(f"not JSON: {name} is no number there")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."  # noqa: PLR2004


def _texts(data: np.ndarray, starts: np.ndarray, ends: np.ndarray, nulls: np.ndarray | None) -> pa.Array:
    lengths = ends - starts
    if nulls is not None:
        lengths[nulls] = 0
    offsets = np.zeros(len(starts) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    out = np.empty(offsets[-1], np.uint8)
    scanner.gather(data, starts, starts + lengths, offsets, out)
    validity = None if nulls is None else pa.array(~nulls).buffers()[1]
    return pa.StringArray.from_buffers(len(starts), pa.py_buffer(offsets), pa.py_buffer(out), validity)
