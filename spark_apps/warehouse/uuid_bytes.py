"""UUIDs as sixteen bytes, so that the warehouse need not parse their text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from semistream.kernels import kernel

_BYTES = 16
_DIGITS_END, _DASH, _LETTERS = ord("9"), ord("-"), ord("a") - 10


def uuid_bytes(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the bytes of UUIDs, given as texts in lower case."""
    return pa.chunked_array([_bytes_of(chunk) for chunk in texts.chunks], pa.binary(_BYTES))


def _bytes_of(texts: pa.Array) -> pa.Array:
    if not len(texts):
        return pa.array([], pa.binary(_BYTES))
    _, offsets, data = texts.buffers()
    out = np.zeros((len(texts), _BYTES), np.uint8)
    starts = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    _parse(np.frombuffer(data or b"", np.uint8), starts, out)
    valid = texts.is_valid().buffers()[1] if texts.null_count else None
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(_BYTES), len(texts), [valid, pa.py_buffer(out)])


@kernel
def _parse(data: np.ndarray, offsets: np.ndarray, out: np.ndarray) -> None:
    for row in range(len(out)):
        at, stop, half = np.uint64(offsets[row]), np.uint64(offsets[row + 1]), np.uint64(0)
        while at < stop:  # a null has no characters
            digit = data[at]
            at += np.uint64(1)
            if digit != _DASH:
                value = digit & 0x0F if digit <= _DIGITS_END else digit - _LETTERS
                place = half >> np.uint64(1)
                out[row, place] = out[row, place] << 4 | value
                half += np.uint64(1)
