"""Read events as they come from Kafka: JSON bytes to Arrow columns, and a reason for each unreadable event.

Nearly all events are plain (scanner.py says what that is): the scanner reads a batch of them at once. The others are
read one by one, so a bad event costs its own time and not its batch's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from spark_apps.events import scanner
from spark_apps.events.careful import read_carefully
from spark_apps.events.words import padded
from spark_apps.pipeline.definition import TOPIC_POSITION
from spark_apps.pipeline.fields import KINDS, UnreadableEventError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_LONGEST_REASON = 200


@dataclass(frozen=True)
class ReadBatch:
    """The result of reading one batch.

    Attributes:
        events: the readable events, in their order.
        rejected: place in the batch and reason of each unreadable event.
    """

    events: pa.RecordBatch
    rejected: list[tuple[int, str]]


class EventReader:
    """Reads batches of one pipeline's events.

    Args:
        fields: name and type of each field that an event must have; others are ignored.
        nullable: the fields that are allowed to be null: an event with a null key is readable, it matches nothing.
        read_one: reads an event that is not plain.
    """

    def __init__(
        self,
        fields: Mapping[str, str],
        nullable: Iterable[str],
        read_one: Callable[..., dict[str, Any]] = read_carefully,
    ) -> None:
        self._kinds = {name: KINDS[kind] for name, kind in fields.items()}
        self._nullable = set(nullable)
        self._read_one = read_one
        columns = [(name, kind.arrow) for name, kind in self._kinds.items()]
        self.schema = pa.schema([(TOPIC_POSITION[0], pa.int32()), (TOPIC_POSITION[1], pa.int64()), *columns])
        encoded = [name.encode() for name in fields]
        self._names = padded(b"".join(encoded))
        self._name_offsets = np.cumsum([0, *map(len, encoded)])
        self._numbers = np.array([kind.number for kind in self._kinds.values()])
        self._may_be_null = np.array([name in self._nullable for name in fields])

    def read(self, partitions: pa.Array, offsets: pa.Array, values: pa.Array) -> ReadBatch:
        """Read a batch of Kafka values, each with its partition and offset."""
        plain, columns = self._scan(values)
        are_plain = pa.array(plain)
        arrays = [partitions.filter(are_plain), offsets.filter(are_plain), *columns]
        events = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        rejected: list[tuple[int, str]] = []
        rows: list[dict[str, Any]] = []
        places: list[int] = []
        for place in np.flatnonzero(~plain).tolist():
            try:
                row = self._read_one(values[place].as_py(), self._kinds, self._nullable)
            except UnreadableEventError as reason:
                rejected.append((place, _storable(reason)))
            else:
                position = (partitions[place].as_py(), offsets[place].as_py())
                rows.append({**dict(zip(TOPIC_POSITION, position, strict=True)), **row})
                places.append(place)
        if rows:
            together = pa.concat_batches([events, pa.RecordBatch.from_pylist(rows, self.schema)])
            order = np.argsort(np.concatenate([np.flatnonzero(plain), places]), kind="stable")
            return ReadBatch(together.take(pa.array(order)), rejected)
        return ReadBatch(events, rejected)

    def _scan(self, values: pa.Array) -> tuple[np.ndarray, list[pa.Array]]:
        """Return which events of a batch are plain, and the columns of those."""
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
        rows = slice(None) if plain.all() else plain  # a slice needs no copy
        for field, kind in enumerate(self._kinds.values()):
            is_null = starts[field, rows] < 0
            nulls = is_null if is_null.any() else None
            if pa.types.is_string(kind.arrow):
                columns.append(_texts(data, starts[field, rows], ends[field, rows], nulls))
            else:
                scanned = floats if pa.types.is_floating(kind.arrow) else numbers
                columns.append(pa.array(scanned[field, rows], mask=nulls).cast(kind.arrow))
        return plain, columns


def _storable(reason: UnreadableEventError) -> str:
    """Return a reason as the warehouse can store it: what it quotes of an event can have half a surrogate pair."""
    return str(reason).encode("utf-8", "backslashreplace").decode()[:_LONGEST_REASON]


def _texts(data: np.ndarray, starts: np.ndarray, ends: np.ndarray, nulls: np.ndarray | None) -> pa.Array:
    """Make a column of the texts between `starts` and `ends` in the data."""
    lengths = ends - starts
    if nulls is not None:
        lengths[nulls] = 0
    offsets = np.zeros(len(starts) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    out = np.empty(offsets[-1], np.uint8)
    scanner.gather(data, starts, starts + lengths, offsets, out)
    validity = None if nulls is None else pa.array(~nulls).buffers()[1]
    return pa.StringArray.from_buffers(len(starts), pa.py_buffer(offsets), pa.py_buffer(out), validity)
