"""Make Arrow columns of what the scanner found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from semistream.kernels import kernel

from spark_apps.events.escapes import write_text
from spark_apps.events.values import Columns
from spark_apps.pipeline.fields import FLOATING, TEXT, UUID

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
    if kind.number in {TEXT, UUID}:
        lengths = scanned.ends[field, rows] - starts
        sizes = scanned.sizes[field, rows] if kind.number == TEXT else lengths
        return _texts(data, starts, lengths, sizes, nulls, to_lower=kind.number == UUID)
    numbers = scanned.floats if kind.number == FLOATING else scanned.numbers
    return pa.array(numbers[field, rows], mask=nulls).cast(kind.arrow)


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
    if nulls is not None:
        sizes = np.where(nulls, 0, sizes)
        lengths = np.where(nulls, 0, lengths)
    offsets = np.zeros(len(starts) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    out = np.empty(offsets[-1], np.uint8)
    _gather(data, starts, lengths, offsets, out)
    if to_lower:
        np.bitwise_or(out, _LOWER_CASE, out=out)
    validity = None if nulls is None else pa.array(~nulls).buffers()[1]
    return pa.StringArray.from_buffers(len(starts), pa.py_buffer(offsets), pa.py_buffer(out), validity)


@kernel
def _gather(data: np.ndarray, starts: np.ndarray, lengths: np.ndarray, offsets: np.ndarray, out: np.ndarray) -> None:
    """Write each text to its offset in `out`; one that is shorter there has escapes."""
    for i in range(len(starts)):
        to, start, size = np.uint64(offsets[i]), np.uint64(starts[i]), offsets[i + 1] - offsets[i]
        if size < lengths[i]:
            write_text(data, starts[i], out, offsets[i], size)
            continue
        for at in range(np.uint64(size)):  # unsigned: numba checks no sign of an index
            out[to + at] = data[start + at]
