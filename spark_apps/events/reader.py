"""Read events as they come from Kafka: JSON bytes to Arrow columns, and a reason for each unreadable event.

Nearly all events are plain (scanner.py says what that is): the scanner reads a batch of them at once. The others are
read one by one, so a bad event costs its own time and not its batch's.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from spark_apps.events import scanner
from spark_apps.events.careful import read_carefully, read_text
from spark_apps.events.columns import column, memory_for, settle_floats
from spark_apps.events.layout import layout_of
from spark_apps.events.words import WIDTH, padded
from spark_apps.pipeline.definition import TOPIC_POSITION
from spark_apps.pipeline.fields import FLOATING, kind_of
from spark_apps.pipeline.json_path import tree_of
from spark_apps.pipeline.json_values import UnreadableEventError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from spark_apps.pipeline.event_field import EventField

_LONGEST_REASON = 200
_NOTHING: Mapping[str, pa.Array] = MappingProxyType({})


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
        fields: what the pipeline's file says about each field of an event; others are ignored.
        key: the fields of the key: an event with a null key is readable, it matches nothing.
        read_one: reads an event that is not plain.
    """

    def __init__(
        self,
        fields: Mapping[str, EventField],
        key: Iterable[str],
        read_one: Callable[..., dict[str, Any]] = read_carefully,
    ) -> None:
        self._fields = fields
        self._nullable = {*key, *(name for name, field in fields.items() if field.optional)}
        self._in_json = {name: field for name, field in fields.items() if not field.origin}
        self._tree = tree_of({name: field.steps(name) for name, field in self._in_json.items()})
        self._beside = {name: field for name, field in fields.items() if field.origin}
        self._read_one = read_one
        self._kinds = [kind_of(field) for field in fields.values()]
        columns = [(name, kind.arrow) for name, kind in zip(fields, self._kinds, strict=True)]
        self.schema = pa.schema([(TOPIC_POSITION[0], pa.int32()), (TOPIC_POSITION[1], pa.int64()), *columns])
        self._defaults = {
            name: pa.scalar(field.default_value(), self.schema.field(name).type)
            for name, field in fields.items()
            if field.default is not None
        }
        self._layout = layout_of(fields, self._tree, self._nullable)
        self._stack = np.empty((2, len(self._layout.entries)), np.int64)
        self._name = np.empty(max(WIDTH, len(self._layout.names)), np.uint8)

    def read(
        self, partitions: pa.Array, offsets: pa.Array, values: pa.Array, beside: Mapping[str, pa.Array] = _NOTHING
    ) -> ReadBatch:
        """Read a batch of messages.

        Args:
            partitions: their partitions.
            offsets: their offsets.
            values: their values.
            beside: keys, headers and timestamps, by the origin of the fields that are read from them.
        """
        beside = {name: _as_read(beside[str(field.origin)], field) for name, field in self._beside.items()}
        plain, columns = self._scan(values, beside)
        are_plain = pa.array(plain)
        arrays = [partitions.filter(are_plain), offsets.filter(are_plain), *columns]
        events = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        rejected: list[tuple[int, str]] = []
        rows: list[dict[str, Any]] = []
        places: list[int] = []
        for place in np.flatnonzero(~plain).tolist():
            try:
                row = self._read_one(values[place].as_py(), self._in_json, self._tree, self._nullable)
                for name, field in self._beside.items():
                    row[name] = beside[name][place].as_py()
                    if field.origin != "timestamp":
                        row[name] = read_text(name, field, row[name], self._nullable)
            except UnreadableEventError as reason:
                rejected.append((place, _storable(reason)))
            else:
                position = (partitions[place].as_py(), offsets[place].as_py())
                rows.append({**dict(zip(TOPIC_POSITION, position, strict=True)), **row})
                places.append(place)
        if rows:
            together = pa.concat_batches([events, pa.RecordBatch.from_pylist(rows, self.schema)])
            order = np.argsort(np.concatenate([np.flatnonzero(plain), places]), kind="stable")
            events = together.take(pa.array(order))
        return ReadBatch(self._with_defaults(events), rejected)

    def _scan(self, values: pa.Array, beside: Mapping[str, pa.Array]) -> tuple[np.ndarray, list[pa.Array]]:
        """Return which events of a batch are plain, and the columns of those."""
        count = len(values)
        data, bounds = _bytes_of(values)
        sources = dict.fromkeys(self._fields, data)
        plain = np.zeros(count, np.bool_)
        scanned = memory_for(len(self._kinds), count)
        scanned.starts[:] = -1  # an optional field is null until it is found
        scanner.scan(data, bounds, self._layout, self._stack, self._name, plain, scanned)
        for field, (name, kind) in enumerate(zip(self._fields, self._kinds, strict=True)):
            if name in beside and self._fields[name].origin != "timestamp":
                sources[name], bounds = _bytes_of(beside[name])
                valid = beside[name].is_valid().to_numpy(zero_copy_only=False)
                scanner.scan_texts(sources[name], bounds, valid, self._layout, field, plain, scanned)
            if kind.number == FLOATING:
                settle_floats(sources[name], scanned, field, plain)
        rows = slice(None) if plain.all() else plain  # a slice needs no copy
        return plain, [
            beside[name].filter(pa.array(plain))
            if self._fields[name].origin == "timestamp"
            else column(sources[name], scanned, field, rows, kind)
            for field, (name, kind) in enumerate(zip(self._fields, self._kinds, strict=True))
        ]

    def _with_defaults(self, events: pa.RecordBatch) -> pa.RecordBatch:
        """Put defaults in the place of nulls."""
        for name, value in self._defaults.items():
            events = events.set_column(events.schema.get_field_index(name), name, events[name].fill_null(value))
        return events


def _as_read(column: pa.Array, field: EventField) -> pa.Array:
    """Return Kafka's timestamps as an event's times are read; other columns as they are."""
    if field.origin != "timestamp":
        return column
    return column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.timestamp("ms"))


def _bytes_of(column: pa.BinaryArray) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of a column, and where each value begins and the last one ends; a null has none."""
    filled = column.fill_null(b"")
    bounds = np.frombuffer(filled.buffers()[1], np.int32)[filled.offset : filled.offset + len(column) + 1]
    return padded(filled.buffers()[2] or b""), bounds


def _storable(reason: UnreadableEventError) -> str:
    """Return a reason as the warehouse can store it: what it quotes of an event can have half a surrogate pair."""
    return str(reason).encode("utf-8", "backslashreplace").decode()[:_LONGEST_REASON]
