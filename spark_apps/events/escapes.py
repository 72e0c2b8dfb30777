"""The characters of a JSON string: UTF-8 and escapes, and the text that they stand for."""

from __future__ import annotations

import numpy as np
from semistream.kernels import kernel

BACKSLASH = ord("\\")
CONTINUES = 0x80  # 10xxxxxx: a continuation byte of UTF-8
HALF = -1  # the size of a text that has half of a surrogate pair
_U = ord("u")
_HIGH, _LOW, _AFTER_LOW = 0xD800, 0xDC00, 0xE000  # where the halves of surrogate pairs begin, and what follows them
_MEANING = np.zeros(256, np.uint8)  # of the byte after a backslash; 0: it may not stand there
for _escape, _meant in zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True):
    _MEANING[_escape] = _meant
_DIGIT = np.full(256, -1, np.int64)  # the value of a hexadecimal digit
for _value in range(16):
    _DIGIT[ord(f"{_value:x}")] = _DIGIT[ord(f"{_value:X}")] = _value


@kernel
def wide_character(data: np.ndarray, at: int, end: int) -> int:
    """Return how many bytes the character at `at` has, or 0 if it is not UTF-8 (RFC 3629, section 4)."""
    lead = data[at]
    low, high = 0x80, 0xBF  # of the second byte
    if 0xC2 <= lead <= 0xDF:  # noqa: PLR2004 - the RFC's own numbers, here and below
        width = 2
    elif 0xE0 <= lead <= 0xEF:  # noqa: PLR2004
        width = 3
        low = 0xA0 if lead == 0xE0 else low  # noqa: PLR2004
        high = 0x9F if lead == 0xED else high  # noqa: PLR2004
    elif 0xF0 <= lead <= 0xF4:  # noqa: PLR2004
        width = 4
        low = 0x90 if lead == 0xF0 else low  # noqa: PLR2004
        high = 0x8F if lead == 0xF4 else high  # noqa: PLR2004
    else:
        return 0
    if at + width > end or not low <= data[at + 1] <= high:
        return 0
    for i in range(2, width):
        if data[at + i] & 0xC0 != CONTINUES:
            return 0
    return width


@kernel
def escape_width(data: np.ndarray, at: int, end: int) -> int:
    r"""Return how many bytes the escape at `at` has: 2, 6 for \uXXXX, 0 if it is none."""
    if at + 2 > end:
        return 0
    if data[at + 1] != _U:
        return 2 if _MEANING[data[at + 1]] else 0
    return 6 if at + 6 <= end and _code_unit(data, at) >= 0 else 0


@kernel
def _code_unit(data: np.ndarray, at: int) -> int:
    r"""Return the number in the \uXXXX at `at`, negative if a digit is wrong."""
    code = 0
    for i in range(2, 6):
        code = code << 4 | _DIGIT[data[at + i]]  # a wrong digit is -1: all bits of the code, and it stays negative
    return code


@kernel
def _low_half(data: np.ndarray, at: int, stop: int) -> int:
    """Return the code unit of the second half of a surrogate pair at `at`, or HALF if there is none."""
    if at + 6 > stop or data[at] != BACKSLASH or data[at + 1] != _U:
        return HALF
    code = _code_unit(data, at)
    return code if _LOW <= code < _AFTER_LOW else HALF


@kernel
def text_size(data: np.ndarray, start: int, stop: int) -> tuple[int, int]:
    """Return the bytes and the characters of the text that a string's bytes stand for.

    Args:
        data: the events' bytes.
        start: behind the opening quote of a string that `string_end` accepts.
        stop: where its closing quote is.
    """
    size, characters, at = 0, 0, start
    while at < stop:
        byte = data[np.uint64(at)]
        if byte != BACKSLASH:
            size += 1
            characters += byte & 0xC0 != CONTINUES
            at += 1
            continue
        characters += 1
        if data[at + 1] != _U:
            size += 1
            at += 2
            continue
        code = _code_unit(data, at)
        at += 6
        if _HIGH <= code < _AFTER_LOW:
            if code >= _LOW or _low_half(data, at, stop) < 0:
                return HALF, characters
            at += 6
            size += 4
        else:
            size += 1 + (code >= 0x80) + (code >= 0x800)  # noqa: PLR2004 - UTF-8's limits
    return size, characters


@kernel
def write_text(data: np.ndarray, start: int, out: np.ndarray, to: int, size: int) -> None:
    """Write the text that begins at `start`; `text_size` says how many bytes it has."""
    stop = to + size
    while to < stop:
        byte = data[np.uint64(start)]
        if byte != BACKSLASH:
            out[np.uint64(to)] = byte
            start += 1
            to += 1
            continue
        if data[start + 1] != _U:
            out[to] = _MEANING[data[start + 1]]
            start += 2
            to += 1
            continue
        code = _code_unit(data, start)
        start += 6
        if _HIGH <= code < _LOW:
            code = 0x10000 + ((code - _HIGH) << 10) + _code_unit(data, start) - _LOW
            start += 6
        to = _write_character(code, out, to)


@kernel
def _write_character(code: int, out: np.ndarray, to: int) -> int:
    """Write a character in UTF-8 and return the place behind it."""
    more = (code >= 0x80) + (code >= 0x800) + (code >= 0x10000)  # noqa: PLR2004 - bytes after the first one
    if not more:
        out[to] = code
    else:
        out[to] = (0xFF00 >> (more + 1)) & 0xFF | code >> (6 * more)
        for i in range(1, more + 1):
            out[to + i] = 0x80 | code >> (6 * (more - i)) & 0x3F
    return to + 1 + more
