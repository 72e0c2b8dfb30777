"""Base64 (RFC 4648, section 4): from text to bytes and back."""

from __future__ import annotations

import string

import numpy as np
import pyarrow as pa
from semistream.kernels import kernel

WRONG = -1
_PADDING = ord("=")
_LETTERS = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
_VALUE = np.full(256, WRONG, np.int64)
for _value, _letter in enumerate(_LETTERS):
    _VALUE[ord(_letter)] = _value
_LETTER = np.frombuffer(_LETTERS.encode(), np.uint8)


@kernel
def decoded_size(data: np.ndarray, start: int, stop: int) -> int:
    """Return how many bytes a text stands for, or WRONG if it is not base64."""
    length = stop - start
    if length % 4:
        return WRONG
    padding = 0
    while padding < 2 and padding < length and data[stop - 1 - padding] == _PADDING:  # noqa: PLR2004
        padding += 1
    for at in range(start, stop - padding):
        if _VALUE[data[at]] < 0:
            return WRONG
    return length // 4 * 3 - padding


@kernel
def decode(data: np.ndarray, starts: np.ndarray, offsets: np.ndarray, out: np.ndarray) -> None:
    """Write the bytes that each text stands for, which begins at its start, to its offset."""
    for i in range(len(starts)):
        at, bits, held = starts[i], 0, 0
        for to in range(offsets[i], offsets[i + 1]):
            while held < 8:  # noqa: PLR2004 - bits of a byte
                bits = (bits << 6 | _VALUE[data[at]]) & 0xFFFF
                held += 6
                at += 1
            held -= 8
            out[to] = bits >> held & 0xFF


def base64_texts(column: pa.BinaryArray) -> pa.StringArray:
    """Return a column's bytes as base64."""
    count = len(column)
    bounds = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + count + 1]
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum((np.diff(bounds) + 2) // 3 * 4, out=offsets[1:])
    out = np.full(offsets[-1], _PADDING, np.uint8)
    _encode(np.frombuffer(column.buffers()[2] or b"", np.uint8), bounds, offsets, out)
    valid = column.is_valid().buffers()[1] if column.null_count else None
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(out), valid)


@kernel
def _encode(data: np.ndarray, bounds: np.ndarray, offsets: np.ndarray, out: np.ndarray) -> None:
    for i in range(len(bounds) - 1):
        to, bits, held = offsets[i], 0, 0
        for at in range(bounds[i], bounds[i + 1]):
            bits = (bits << 8 | data[at]) & 0xFFFF
            held += 8
            while held >= 6:  # noqa: PLR2004 - bits of a letter
                held -= 6
                out[to] = _LETTER[bits >> held & 0x3F]
                to += 1
        if held:
            out[to] = _LETTER[bits << (6 - held) & 0x3F]
