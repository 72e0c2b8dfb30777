"""Read plain events straight into columns, a batch in one kernel.

Nearly all events are plain: a flat JSON object, UTF-8, no escapes in strings, numbers of usual length, each known field
once, each value of its type (values.py). The scanner skips the others. The careful reader (careful.py) reads those one
by one and decides whether they are readable. A property test checks that both read a plain event alike.
"""

from __future__ import annotations

import numpy as np
from semistream.kernels import inlined, kernel

from spark_apps.events.values import CONTINUES, DOT, MINUS, NINE, PLUS, QUOTE, ZERO, is_exponent, read_value
from spark_apps.events.words import WIDTH, bytes_before, leading, not_digits, not_plain, word_at

_MOST_DIGITS = 18
_COLON, _COMMA, _OPEN, _CLOSE, _SPACE = (ord(c) for c in ":,{} ")
_WORDS = np.frombuffer(b"null true false", np.uint8)
_NULL, _TRUE, _FALSE = 0, 5, 10  # where each word begins
_NOT_PLAIN = -1


@kernel
def scan(
    data: np.ndarray,
    offsets: np.ndarray,
    names: np.ndarray,
    name_offsets: np.ndarray,
    kinds: np.ndarray,
    nullable: np.ndarray,
    plain: np.ndarray,
    numbers: np.ndarray,
    floats: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
) -> None:
    """Write the values of each plain event to the columns and mark the event; a null has the start -1.

    Args:
        data: the events' bytes.
        offsets: where each event begins, and where the last one ends.
        names: the fields' names, one after the other.
        name_offsets: where each name begins, and where the last one ends.
        kinds: the number of each field's type (spark_apps/pipeline/fields.py).
        nullable: True for fields that are allowed to be null.
        plain: set to True for each plain event.
        numbers: by field and event, the value of an INTEGER, UNSIGNED or TIMESTAMP (milliseconds).
        floats: by field and event, the value of a FLOATING.
        starts: by field and event, where a value's bytes begin.
        ends: by field and event, where they end.
    """
    everything = (1 << len(kinds)) - 1
    for event in range(len(offsets) - 1):
        plain[event] = _scan_event(
            data, offsets[event], offsets[event + 1], names, name_offsets, kinds, nullable,
            event, numbers, floats, starts, ends,
        ) == everything  # fmt: skip


@inlined
def _scan_event(
    data: np.ndarray,
    at: int,
    end: int,
    names: np.ndarray,
    name_offsets: np.ndarray,
    kinds: np.ndarray,
    nullable: np.ndarray,
    event: int,
    numbers: np.ndarray,
    floats: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
) -> int:
    """Return which fields were read, a bit for each, or -1 when the event is not plain."""
    seen, field = 0, -1
    at = _skip_space(data, at, end)
    if at >= end or data[at] != _OPEN:
        return _NOT_PLAIN
    separator = _COMMA
    at += 1
    while separator == _COMMA:
        start = _skip_space(data, at, end)
        stop = _string_end(data, start, end)
        if stop < 0:
            return _NOT_PLAIN
        field = _find(data, start + 1, stop, names, name_offsets, field + 1)
        at = _skip_space(data, stop + 1, end)
        if at >= end or data[at] != _COLON:
            return _NOT_PLAIN
        start = _skip_space(data, at + 1, end)
        stop = _value_end(data, start, end)
        if stop < 0:
            return _NOT_PLAIN
        if field >= 0:
            bit = 1 << field
            if seen & bit or not read_value(
                data, start, stop, kinds[field], nullable[field], (field, event), numbers, floats, starts, ends
            ):
                return _NOT_PLAIN
            seen |= bit
        at = _skip_space(data, stop, end)
        if at >= end:
            return _NOT_PLAIN
        separator = data[at]
        at += 1
    if separator != _CLOSE or _skip_space(data, at, end) != end:
        return _NOT_PLAIN
    return seen


@inlined
def _skip_space(data: np.ndarray, at: int, end: int) -> int:
    while at < end and data[np.uint64(at)] <= _SPACE and (data[at] == _SPACE or 9 <= data[at] <= 10 or data[at] == 13):  # noqa: PLR2004 - tab, newline, return
        at += 1
    return at


@inlined
def _string_end(data: np.ndarray, start: int, end: int) -> int:
    """Return where the closing quote of the plain string at `start` is, or -1 if none begins there."""
    if start >= end or data[start] != QUOTE:
        return _NOT_PLAIN
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
            return int(at)
        width = _wide_character(data, at, end) if byte >= CONTINUES else 0
        if not width:
            break
        at += width
    return _NOT_PLAIN


@kernel
def _wide_character(data: np.ndarray, at: int, end: int) -> int:
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


@inlined
def _value_end(data: np.ndarray, start: int, end: int) -> int:
    """Return where the plain string, number, null, true or false at `start` ends, or -1 if none begins there."""
    if start >= end:
        return _NOT_PLAIN
    if data[start] == QUOTE:
        stop = _string_end(data, start, end)
        return stop + 1 if stop >= 0 else _NOT_PLAIN
    if data[start] == MINUS or ZERO <= data[start] <= NINE:
        stop = start + bytes_before(not_digits(word_at(data, start)))
        if data[start] > ZERO and start + WIDTH > stop < end and not _goes_on(data[stop]):
            return stop
        return _number_end(data, start, end)
    if _is_word(data, start, end, _NULL, 4) or _is_word(data, start, end, _TRUE, 4):
        return start + 4
    return start + 5 if _is_word(data, start, end, _FALSE, 5) else _NOT_PLAIN


@inlined
def _goes_on(byte: int) -> bool:
    """Return whether a fraction or an exponent follows the digits of a number."""
    return byte == DOT or is_exponent(byte)


@kernel
def _number_end(data: np.ndarray, start: int, end: int) -> int:
    """Return where the JSON number at `start` ends, or -1 if it is not a plain one."""
    digit = start + (data[start] == MINUS)
    at = _digits_end(data, digit, end)
    if at == digit or at - digit > _MOST_DIGITS or (at - digit > 1 and data[digit] == ZERO):
        return _NOT_PLAIN
    if at < end and data[at] == DOT:
        digit = at + 1
        at = _digits_end(data, digit, end)
        if at == digit:
            return _NOT_PLAIN
    if at < end and is_exponent(data[at]):
        digit = at + 1
        digit += digit < end and (data[digit] == PLUS or data[digit] == MINUS)
        at = _digits_end(data, digit, end)
        if at == digit:
            return _NOT_PLAIN
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
def _find(data: np.ndarray, start: int, stop: int, names: np.ndarray, name_offsets: np.ndarray, likely: int) -> int:
    """Return the number of the field that has this name, or -1 if none has it.

    It tries the field `likely` first, because most events have their fields in the order of the schema.
    """
    fields = len(name_offsets) - 1
    field = likely
    for _ in range(fields):
        if field >= fields:
            field = 0
        name, length = name_offsets[field], stop - start
        if name_offsets[field + 1] - name == length:
            differing = np.uint64(0)
            for i in range(0, length, WIDTH):
                differing |= leading(word_at(data, start + i) ^ word_at(names, name + i), min(length - i, WIDTH))
            if not differing:
                return field
        field += 1
    return -1


@kernel
def gather(data: np.ndarray, starts: np.ndarray, ends: np.ndarray, offsets: np.ndarray, out: np.ndarray) -> None:
    """Copy each text between `starts` and `ends` to its offset in `out`."""
    for i in range(len(starts)):
        to, start = np.uint64(offsets[i]), np.uint64(starts[i])  # unsigned: numba checks no sign of an index
        for at in range(np.uint64(ends[i]) - start):
            out[to + at] = data[start + at]
