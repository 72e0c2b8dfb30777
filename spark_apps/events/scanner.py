"""Read plain events straight into columns, a batch in one kernel.

Nearly all events are plain: valid JSON, not nested very deeply, each known field once, each value in one of the usual
forms of its type (values.py). The scanner skips the others. The careful reader (careful.py) reads those one by one and
decides whether they are readable. A property test checks that both read a plain event alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from semistream.kernels import inlined, kernel

from spark_apps.events.escapes import text_size, write_text
from spark_apps.events.tokens import (
    ARRAY,
    ARRAY_END,
    COLON,
    COMMA,
    OBJECT,
    OBJECT_END,
    skip_space,
    string_end,
    value_end,
)
from spark_apps.events.values import read_text, read_value
from spark_apps.events.words import WIDTH, leading, word_at

if TYPE_CHECKING:
    from spark_apps.events.layout import Layout
    from spark_apps.events.values import Columns

_NOT_PLAIN = -1
_UNKNOWN = -1


@kernel
def scan(
    data: np.ndarray,
    offsets: np.ndarray,
    layout: Layout,
    stack: np.ndarray,
    name: np.ndarray,
    plain: np.ndarray,
    columns: Columns,
) -> None:
    """Write the values of each plain event to the columns and mark the event; a null or missing one has the start -1.

    Args:
        data: the events' bytes.
        offsets: where each event begins, and where the last one ends.
        layout: the fields.
        stack: memory for the nodes that the scanner is in: the entry and the index of each.
        name: memory for a name that has escapes; a longer one is unknown.
        plain: set to True for each plain event.
        columns: where the values go.
    """
    for event in range(len(offsets) - 1):
        seen = _scan_event(data, offsets[event], offsets[event + 1], layout, stack, name, event, columns)
        plain[event] = seen >= 0 and seen & layout.required == layout.required


@kernel
def scan_texts(
    data: np.ndarray,
    offsets: np.ndarray,
    valid: np.ndarray,
    layout: Layout,
    field: int,
    plain: np.ndarray,
    columns: Columns,
) -> None:
    """Write to a field's column what whole texts have; an event whose text is not plain is not plain either.

    Args:
        data: the texts' bytes.
        offsets: where each text begins, and where the last one ends.
        valid: False where there is no text.
        layout: the fields.
        field: the field that the texts are of.
        plain: whether the event of each text is plain.
        columns: where the values go.
    """
    for event in range(len(plain)):
        if valid[event]:
            plain[event] &= read_text(data, offsets[event], offsets[event + 1], layout, field, event, columns)
        else:
            columns.starts[field, event] = -1
            plain[event] &= layout.nullable[field]


@inlined
def _scan_event(
    data: np.ndarray,
    at: int,
    end: int,
    layout: Layout,
    stack: np.ndarray,
    name: np.ndarray,
    event: int,
    columns: Columns,
) -> int:
    """Return which entries of the layout were there, a bit for each, or -1 when the event is not plain."""
    seen, depth, node, entry, index = 0, 0, 0, _UNKNOWN, 0
    at = skip_space(data, at, end)
    if at >= end or data[at] != OBJECT:
        return _NOT_PLAIN
    at += 1
    while True:
        if layout.arrays[node]:
            entry = _entry_at(layout, node, index)
        else:
            entry, at = _named_entry(data, at, end, layout, node, entry + 1, name)
            if at < 0:
                return _NOT_PLAIN
        start = skip_space(data, at, end)
        if entry == _UNKNOWN:
            stop = value_end(data, start, end)
            if stop < 0:
                return _NOT_PLAIN
        else:
            if seen & 1 << entry:
                return _NOT_PLAIN
            seen |= 1 << entry
            target = layout.targets[entry]
            if target >= 0:
                stop = read_value(data, start, end, layout, target, event, columns)
                if stop < 0:
                    return _NOT_PLAIN
            elif start < end and data[start] == (ARRAY if layout.arrays[~target] else OBJECT):
                stop = _empty_end(data, start, end)
                if stop < 0:
                    stack[0, depth], stack[1, depth] = entry, index
                    depth += 1
                    node, entry, index, at = ~target, layout.entries[~target] - 1, 0, start + 1
                    continue
            else:
                stop = value_end(data, start, end)
                if stop < 0:
                    return _NOT_PLAIN
        at = skip_space(data, stop, end)
        while at < end and data[at] != COMMA:
            if data[at] != (ARRAY_END if layout.arrays[node] else OBJECT_END):
                return _NOT_PLAIN
            at = skip_space(data, at + 1, end)
            if depth == 0:
                return seen if at == end else _NOT_PLAIN
            depth -= 1
            entry, index = stack[0, depth], stack[1, depth]
            node = 0 if depth == 0 else ~layout.targets[stack[0, depth - 1]]
        if at >= end:
            return _NOT_PLAIN
        at += 1
        index += 1


@inlined
def _named_entry(
    data: np.ndarray, at: int, end: int, layout: Layout, node: int, likely: int, name: np.ndarray
) -> tuple[int, int]:
    """Return the entry that the next name leads to, and the place behind its colon; -1 for no entry, and for none."""
    start = skip_space(data, at, end)
    stop, escaped = string_end(data, start, end)
    if stop < 0:
        return _UNKNOWN, _NOT_PLAIN
    if escaped:
        entry = _find_escaped(data, start + 1, stop, layout, node, name)
    else:
        entry = _find(data, start + 1, stop, layout, node, likely)
    at = skip_space(data, stop + 1, end)
    return entry, at + 1 if at < end and data[at] == COLON else _NOT_PLAIN


@inlined
def _empty_end(data: np.ndarray, start: int, end: int) -> int:
    """Return where the object or array at `start` ends if nothing is in it, else -1."""
    at = skip_space(data, start + 1, end)
    return at + 1 if at < end and data[at] == data[start] + 2 else _NOT_PLAIN


@inlined
def _entry_at(layout: Layout, node: int, index: int) -> int:
    """Return the entry of an array's element."""
    for entry in range(layout.entries[node], layout.entries[node + 1]):
        if layout.indices[entry] == index:
            return int(entry)
    return _UNKNOWN


@inlined
def _find(data: np.ndarray, start: int, stop: int, layout: Layout, node: int, likely: int) -> int:
    """Return the entry of the node that has this name.

    It tries the entry `likely` first, because most events have their fields in the order of the schema.
    """
    first, last = layout.entries[node], layout.entries[node + 1]
    entry = likely
    for _ in range(last - first):
        if entry >= last or entry < first:
            entry = first
        name, length = layout.name_offsets[entry], stop - start
        if layout.name_offsets[entry + 1] - name == length:
            differing = np.uint64(0)
            for i in range(0, length, WIDTH):
                differing |= leading(word_at(data, start + i) ^ word_at(layout.names, name + i), min(length - i, WIDTH))
            if not differing:
                return entry
        entry += 1
    return _UNKNOWN


@kernel
def _find_escaped(data: np.ndarray, start: int, stop: int, layout: Layout, node: int, name: np.ndarray) -> int:
    """Return the entry of the node that has this name, which has escapes."""
    size, _ = text_size(data, start, stop)
    if not 0 <= size <= len(name):
        return _UNKNOWN
    write_text(data, start, name, 0, size)
    return _find(name, 0, size, layout, node, 0)
