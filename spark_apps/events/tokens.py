"""Find where a JSON value ends, and check on the way that it is JSON (RFC 8259).

Positions are places in the bytes of a batch; -1 says that no value begins there. A value that is nested more than 63
levels deep, or has a number of more than 4,000 digits, counts as none: the careful reader decides about it.
"""

from __future__ import annotations

import numpy as np
from semistream.kernels import inlined, kernel

from spark_apps.events.escapes import BACKSLASH, CONTINUES, escape_width, wide_character
from spark_apps.events.words import WIDTH, bytes_before, not_digits, not_plain, word_at

NOTHING = -1
QUOTE, COLON, COMMA, DOT, MINUS, PLUS, ZERO, NINE = (ord(c) for c in '":,.-+09')
OBJECT, OBJECT_END, ARRAY, ARRAY_END = (ord(c) for c in "{}[]")
_SPACE = ord(" ")
_DEEPEST, _MOST_DIGITS = 63, 4000
_WORDS = np.frombuffer(b"null true false", np.uint8)
_NULL, _TRUE, _FALSE = 0, 5, 10  # where each word begins


@inlined
def skip_space(data: np.ndarray, at: int, end: int) -> int:
    """Return the first place that is not white space."""
    while at < end and data[np.uint64(at)] <= _SPACE and (data[at] == _SPACE or 9 <= data[at] <= 10 or data[at] == 13):  # noqa: PLR2004 - tab, newline, return
        at += 1
    return at


@inlined
def string_end(data: np.ndarray, start: int, end: int) -> tuple[int, bool]:
    """Return where the closing quote of the string at `start` is, and whether the string has escapes."""
    escaped = False
    if start >= end or data[start] != QUOTE:
        return NOTHING, escaped
    at = start + 1
    while at < end:
        flags = not_plain(word_at(data, at))
        if not flags:
            at += WIDTH
            continue
        at += bytes_before(flags)
        if at >= end:
            break
        byte = data[np.uint64(at)]
        if byte == QUOTE:
            return int(at), escaped
        width = 0
        if byte >= CONTINUES:
            width = wide_character(data, at, end)
        elif byte == BACKSLASH:
            width = escape_width(data, at, end)
            escaped = True
        if not width:
            break
        at += width
    return NOTHING, escaped


@inlined
def scalar_end(data: np.ndarray, start: int, end: int) -> int:
    """Return where the number, null, true or false at `start` ends."""
    if start >= end:
        return NOTHING
    if data[start] == MINUS or ZERO <= data[start] <= NINE:
        stop = start + bytes_before(not_digits(word_at(data, start)))
        if data[start] > ZERO and start + WIDTH > stop < end and not _goes_on(data[stop]):
            return stop
        return number_end(data, start, end)
    if _is_word(data, start, end, _NULL, 4) or _is_word(data, start, end, _TRUE, 4):
        return start + 4
    return start + 5 if _is_word(data, start, end, _FALSE, 5) else NOTHING


@inlined
def _goes_on(byte: int) -> bool:
    """Return whether a fraction or an exponent follows the digits of a number."""
    return byte == DOT or is_exponent(byte)


@kernel
def is_exponent(byte: int) -> bool:
    """Return whether a byte begins an exponent."""
    return byte | 0x20 == 0x65  # noqa: PLR2004 - E or e


@kernel
def number_end(data: np.ndarray, start: int, end: int) -> int:
    """Return where the number at `start` ends."""
    digit = start + (start < end and data[start] == MINUS)
    at = _digits_end(data, digit, end)
    if at == digit or at - digit > _MOST_DIGITS or (at - digit > 1 and data[digit] == ZERO):
        return NOTHING
    if at < end and data[at] == DOT:
        digit = at + 1
        at = _digits_end(data, digit, end)
        if at == digit:
            return NOTHING
    if at < end and is_exponent(data[at]):
        digit = at + 1
        digit += digit < end and (data[digit] == PLUS or data[digit] == MINUS)
        at = _digits_end(data, digit, end)
        if at == digit:
            return NOTHING
    return int(at)


@kernel
def _digits_end(data: np.ndarray, at: int, end: int) -> int:
    while at < end and ZERO <= data[at] <= NINE:
        at += 1
    return at


@kernel
def _is_word(data: np.ndarray, start: int, end: int, word: int, length: int) -> bool:
    """Return whether the data has, at `start`, the word that begins at `word` in `_WORDS`."""
    if start + length > end:
        return False
    same = True
    for i in range(length):
        same = same and data[start + i] == _WORDS[word + i]
    return same


@inlined
def value_end(data: np.ndarray, start: int, end: int) -> int:
    """Return where the value at `start` ends, of whatever kind it is."""
    if start < end and data[start] == QUOTE:
        stop, _ = string_end(data, start, end)
        return stop + 1 if stop >= 0 else NOTHING
    if start < end and (data[start] == OBJECT or data[start] == ARRAY):
        return _container_end(data, start, end)
    return scalar_end(data, start, end)


@kernel
def _container_end(data: np.ndarray, start: int, end: int) -> int:
    """Return where the object or array at `start` ends."""
    depth, arrays = 0, np.uint64(0)  # a bit for each level: the lowest one says whether the innermost is an array
    at = start
    while True:
        if at < end and (data[at] == OBJECT or data[at] == ARRAY):
            opening = data[at]
            at = skip_space(data, at + 1, end)
            if at < end and data[at] == opening + 2:  # the closing bracket of an empty one
                at += 1
            else:
                if depth == _DEEPEST:
                    return NOTHING
                depth += 1
                arrays = (arrays << np.uint64(1)) | np.uint64(opening == ARRAY)
                at = at if opening == ARRAY else _member_value(data, at, end)
                if at < 0:
                    return NOTHING
                continue
        elif at < end and data[at] == QUOTE:
            stop, _ = string_end(data, at, end)
            if stop < 0:
                return NOTHING
            at = stop + 1
        else:
            at = scalar_end(data, at, end)
            if at < 0:
                return NOTHING
        while depth > 0:
            at = skip_space(data, at, end)
            in_array = arrays & np.uint64(1) != 0
            if at < end and data[at] == COMMA:
                at = skip_space(data, at + 1, end)
                at = at if in_array else _member_value(data, at, end)
                break
            if at >= end or data[at] != (ARRAY_END if in_array else OBJECT_END):
                return NOTHING
            at += 1
            depth -= 1
            arrays >>= np.uint64(1)
        if at < 0 or depth == 0:
            return at


@kernel
def _member_value(data: np.ndarray, start: int, end: int) -> int:
    """Return where the value of the object's member at `start` begins."""
    stop, _ = string_end(data, start, end)
    at = skip_space(data, stop + 1, end)
    if stop < 0 or at >= end or data[at] != COLON:
        return NOTHING
    return int(skip_space(data, at + 1, end))
