"""Make Arrow columns of what the scanner found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from semistream.kernels import kernel

from spark_apps.events.base64_text import decode
from spark_apps.events.escapes import write_text
from spark_apps.events.values import Columns
from spark_apps.pipeline.fields import BYTES, DATE, DECIMAL, FLOATING, JSON, TEXT, UUID

if TYPE_CHECKING:
    from spark_apps.pipeline.fields import Kind

_LOWER_CASE = 0x20  # of a letter; digits and dashes have this bit, too


def memory_for(fields: int, events: int) -> Columns:
    """Return memory for the values of a batch."""
    numbers = np.empty((fields, events), np.int64)
    starts, ends, sizes = (np.empty((fields, events), np.int32) for _ in range(3))
    return Columns(numbers, numbers.view(np.float64), starts, ends, sizes)


def settle_floats(data: np.ndarray, scanned: Columns, field: int, plain: np.ndarray) -> None:
    """Let Arrow read the numbers that take more than one rounding; an event with an infinite one is not plain."""
    late = np.flatnonzero(plain & np.isnan(scanned.floats[field]) & (scanned.starts[field] >= 0))
    if len(late):
        starts, ends = scanned.starts[field, late], scanned.ends[field, late]
        numbers = _texts(data, starts, ends - starts, ends - starts, None).cast(pa.float64()).to_numpy()
        scanned.floats[field, late] = numbers
        plain[late] = np.isfinite(numbers)


def column(data: np.ndarray, scanned: Columns, field: int, rows: slice | np.ndarray, kind: Kind) -> pa.Array:
    """Return a field's values in some of the events."""
    starts = scanned.starts[field, rows]
    is_null = starts < 0
    nulls = is_null if is_null.any() else None
    if kind.number in {TEXT, UUID, JSON, BYTES}:
        lengths = scanned.ends[field, rows] - starts
        sizes = lengths if kind.number == UUID else scanned.sizes[field, rows]
        if kind.number == BYTES:
            return _bytes(data, starts, sizes, nulls)
        return _texts(data, starts, lengths, sizes, nulls, to_lower=kind.number == UUID)
    numbers = (scanned.floats if kind.number == FLOATING else scanned.numbers)[field, rows]
    if kind.number == DECIMAL:
        return _decimals(numbers, nulls, kind.arrow)
    whole = pa.array(numbers, mask=nulls)
    return (whole.cast(pa.int32()) if kind.number == DATE else whole).cast(kind.arrow)


def _decimals(numbers: np.ndarray, nulls: np.ndarray | None, kind: pa.DataType) -> pa.Array:
    """Make a column of decimals, which Arrow stores as integers of sixteen bytes, from integers of eight."""
    words = np.stack([numbers, numbers >> 63], axis=1)
    return pa.Array.from_buffers(kind, len(numbers), [_validity(nulls), pa.py_buffer(words)])


def _bytes(data: np.ndarray, starts: np.ndarray, sizes: np.ndarray, nulls: np.ndarray | None) -> pa.Array:
    """Make a column of what texts in base64 stand for."""
    offsets = _offsets(sizes, nulls)
    out = np.empty(offsets[-1], np.uint8)
    decode(data, starts, offsets, out)
    return pa.Array.from_buffers(pa.binary(), len(starts), [_validity(nulls), pa.py_buffer(offsets), pa.py_buffer(out)])


def _offsets(sizes: np.ndarray, nulls: np.ndarray | None) -> np.ndarray:
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes if nulls is None else np.where(nulls, 0, sizes), out=offsets[1:])
    return offsets


def _validity(nulls: np.ndarray | None) -> pa.Buffer | None:
    return None if nulls is None else pa.array(~nulls).buffers()[1]


def _texts(
    data: np.ndarray,
    starts: np.ndarray,
    lengths: np.ndarray,
    sizes: np.ndarray,
    nulls: np.ndarray | None,
    *,
    to_lower: bool = False,
) -> pa.Array:
    """Make a column of texts.

    Args:
        data: the events' bytes.
        starts: where each text begins.
        lengths: its bytes in the event.
        sizes: its bytes without escapes.
        nulls: True where there is none.
        to_lower: whether to write the letters of UUIDs in lower case.
    """
    offsets = _offsets(sizes, nulls)
    out = np.empty(offsets[-1], np.uint8)
    _gather(data, starts, lengths, offsets, out)
    if to_lower:
        np.bitwise_or(out, _LOWER_CASE, out=out)
    return pa.StringArray.from_buffers(len(starts), pa.py_buffer(offsets), pa.py_buffer(out), _validity(nulls))


@kernel
def _gather(data: np.ndarray, starts: np.ndarray, lengths: np.ndarray, offsets: np.ndarray, out: np.ndarray) -> None:
    """Write each text to its offset in `out`; one that is shorter there has escapes."""
    for i in range(len(starts)):
        to, start, size = np.uint64(offsets[i]), np.uint64(starts[i]), offsets[i + 1] - offsets[i]
        if 0 < size < lengths[i]:
            write_text(data, starts[i], out, offsets[i], size)
            continue
        for at in range(np.uint64(size)):  # unsigned: numba checks no sign of an index
            out[to + at] = data[start + at]
