"""Reads flat JSON objects of known fields straight into columns, a batch in one kernel.

It takes the plain ones, which are nearly all: no escapes in strings, no nested values, ASCII only, each known field
once, each value of its type. What is not plain is left to the careful reader in events.py, event by event, which alone
decides what is wrong with it. Whatever the kernel takes, the careful reader would read the same (a property test).
"""

from __future__ import annotations

import numpy as np

from spark_apps.semistream.kernel import kernel

INTEGER, UNSIGNED, FLOATING, TEXT, UUID, TIMESTAMP = range(6)
LARGEST_UNSIGNED = 2**32 - 1
LONGEST_TEXT = 255
_MOST_DIGITS = 18
_UUID_LENGTH = 36
_QUOTE, _BACKSLASH, _COLON, _COMMA, _OPEN, _CLOSE, _MINUS = (ord(c) for c in '"\\:,{}-')
_ZERO, _NINE, _DOT, _T, _Z, _SPACE, _DELETE = (ord(c) for c in "09.TZ \x7f")
_WORDS = np.frombuffer(b"null true false", np.uint8)
_NULL, _TRUE, _FALSE = 0, 5, 10  # where each begins
_MALFORMED = -1


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
    starts: np.ndarray,
    ends: np.ndarray,
) -> None:
    """Fill the columns of each plain event and mark it; a null has its start at -1.

    Args:
        data: the events' bytes.
        offsets: where each event begins; one more for the last one's end.
        names: the fields' names, one after the other.
        name_offsets: where each name begins.
        kinds: each field's kind.
        nullable: fields that may be null.
        plain: set for the events that were read.
        numbers: by field and event, the value of an INTEGER, UNSIGNED or TIMESTAMP (milliseconds).
        starts: by field and event, where a value's bytes begin.
        ends: by field and event, where they end.
    """
    everything = (1 << len(kinds)) - 1
    for event in range(len(offsets) - 1):
        plain[event] = _scan_event(
            data, offsets[event], offsets[event + 1], names, name_offsets, kinds, nullable,
            numbers[:, event], starts[:, event], ends[:, event],
        ) == everything  # fmt: skip


@kernel
def _scan_event(
    data: np.ndarray,
    at: int,
    end: int,
    names: np.ndarray,
    name_offsets: np.ndarray,
    kinds: np.ndarray,
    nullable: np.ndarray,
    numbers: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
) -> int:
    """Return the set of fields that were read, as bits, or -1 when the event is not plain."""
    seen = 0
    at = _skip_space(data, at, end)
    if at >= end or data[at] != _OPEN:
        return _MALFORMED
    separator = _COMMA
    at += 1
    while separator == _COMMA:
        start = _skip_space(data, at, end)
        stop = _string_end(data, start, end)
        if stop < 0:
            return _MALFORMED
        field = _find(data, start + 1, stop, names, name_offsets)
        at = _skip_space(data, stop + 1, end)
        if at >= end or data[at] != _COLON:
            return _MALFORMED
        start = _skip_space(data, at + 1, end)
        stop = _value_end(data, start, end)
        if stop < 0:
            return _MALFORMED
        if field >= 0:
            bit = 1 << field
            if seen & bit or not _take(data, start, stop, kinds[field], nullable[field], field, numbers, starts, ends):
                return _MALFORMED
            seen |= bit
        at = _skip_space(data, stop, end)
        if at >= end:
            return _MALFORMED
        separator = data[at]
        at += 1
    if separator != _CLOSE or _skip_space(data, at, end) != end:
        return _MALFORMED
    return seen


@kernel
def _skip_space(data: np.ndarray, at: int, end: int) -> int:
    while at < end and (data[at] == _SPACE or 9 <= data[at] <= 10 or data[at] == 13):  # noqa: PLR2004 - tab, newline, return
        at += 1
    return at


@kernel
def _string_end(data: np.ndarray, start: int, end: int) -> int:
    """Find the closing quote of a plain string that begins at `start`."""
    if start >= end or data[start] != _QUOTE:
        return _MALFORMED
    for at in range(start + 1, end):
        byte = data[at]
        if byte == _QUOTE:
            return at
        if byte == _BACKSLASH or byte < _SPACE or byte >= _DELETE:
            return _MALFORMED
    return _MALFORMED


@kernel
def _value_end(data: np.ndarray, start: int, end: int) -> int:
    """Find the end of a plain string, a whole number, null, true or false."""
    if start >= end:
        return _MALFORMED
    if data[start] == _QUOTE:
        stop = _string_end(data, start, end)
        return stop + 1 if stop >= 0 else _MALFORMED
    if data[start] == _MINUS or _ZERO <= data[start] <= _NINE:
        return _number_end(data, start, end)
    if _is_word(data, start, end, _NULL, 4) or _is_word(data, start, end, _TRUE, 4):
        return start + 4
    return start + 5 if _is_word(data, start, end, _FALSE, 5) else _MALFORMED


@kernel
def _number_end(data: np.ndarray, start: int, end: int) -> int:
    first = start + (data[start] == _MINUS)
    at = first
    while at < end and _ZERO <= data[at] <= _NINE:
        at += 1
    digits = at - first
    if digits == 0 or digits > _MOST_DIGITS or (digits > 1 and data[first] == _ZERO):
        return _MALFORMED
    return int(at)


@kernel
def _is_word(data: np.ndarray, start: int, end: int, word: int, length: int) -> bool:
    """Tell whether one of the words stands there."""
    if start + length > end:
        return False
    same = True
    for i in range(length):
        same = same and data[start + i] == _WORDS[word + i]
    return same


@kernel
def _find(data: np.ndarray, start: int, stop: int, names: np.ndarray, name_offsets: np.ndarray) -> int:
    for field in range(len(name_offsets) - 1):
        first = name_offsets[field]
        if name_offsets[field + 1] - first == stop - start:
            same = True
            for i in range(stop - start):
                if data[start + i] != names[first + i]:
                    same = False
                    break
            if same:
                return field
    return -1


@kernel
def _take(
    data: np.ndarray,
    start: int,
    stop: int,
    kind: int,
    nullable: bool,  # noqa: FBT001 - of the field, as the kind is
    field: int,
    numbers: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
) -> bool:
    """Take one value into its column; false when it is not plainly of its kind."""
    first = data[start]
    quoted = first == _QUOTE
    if stop - start == 4 and first == 110:  # noqa: PLR2004 - null
        starts[field] = -1
        return nullable
    starts[field], ends[field] = start + quoted, stop - quoted
    if kind in (INTEGER, UNSIGNED):
        if quoted or first > _NINE:
            return False
        numbers[field] = _integer(data, start, stop)
        return kind == INTEGER or 0 <= numbers[field] <= LARGEST_UNSIGNED
    if kind == TEXT:
        return quoted and stop - start - 2 <= LONGEST_TEXT
    if kind == UUID:
        return quoted and _is_uuid(data, start + 1, stop - 1)
    if kind == TIMESTAMP and quoted:
        numbers[field] = _milliseconds(data, start + 1, stop - 1)
        return bool(numbers[field] != _NO_TIME)
    return False


@kernel
def _integer(data: np.ndarray, start: int, stop: int) -> int:
    negative = data[start] == _MINUS
    value = 0
    for at in range(start + negative, stop):
        value = value * 10 + int(data[at]) - _ZERO
    return -value if negative else value


@kernel
def _is_uuid(data: np.ndarray, start: int, stop: int) -> bool:
    """Tell whether 36 characters are a UUID in lower case."""
    if stop - start != _UUID_LENGTH:
        return False
    for i in range(_UUID_LENGTH):
        byte = data[start + i]
        if i in (8, 13, 18, 23):
            if byte != _MINUS:
                return False
        elif not (_ZERO <= byte <= _NINE or 97 <= byte <= 102):  # noqa: PLR2004 - a to f
            return False
    return True


_NO_TIME = -(2**63)
_SHORT, _LONG = 20, 24  # 2026-01-02T03:04:05Z, and with milliseconds
_FIRST_YEAR = 1000  # of MariaDB's DATETIME
_MILLISECONDS_A_DAY = 86_400_000


@kernel
def _milliseconds(data: np.ndarray, start: int, stop: int) -> int:
    """Read a UTC time of one of the two plain forms as milliseconds since 1970."""
    length = stop - start
    if length not in (_SHORT, _LONG) or data[stop - 1] != _Z or data[start + 10] != _T:
        return _NO_TIME
    if data[start + 4] != _MINUS or data[start + 7] != _MINUS:
        return _NO_TIME
    if data[start + 13] != _COLON or data[start + 16] != _COLON or (length == _LONG and data[start + 19] != _DOT):
        return _NO_TIME
    year, month, day = _digits(data, start, 4), _digits(data, start + 5, 2), _digits(data, start + 8, 2)
    hour, minute, second = _digits(data, start + 11, 2), _digits(data, start + 14, 2), _digits(data, start + 17, 2)
    fraction = _digits(data, start + 20, 3) if length == _LONG else 0
    if year < _FIRST_YEAR or not 1 <= month <= 12 or not 1 <= day <= _days_in(year, month):  # noqa: PLR2004
        return _NO_TIME
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60 and fraction >= 0):  # noqa: PLR2004
        return _NO_TIME
    return (
        _days_since_1970(year, month, day) * _MILLISECONDS_A_DAY
        + ((hour * 60 + minute) * 60 + second) * 1000
        + fraction
    )


@kernel
def _digits(data: np.ndarray, start: int, count: int) -> int:
    value = 0
    for at in range(start, start + count):
        if not _ZERO <= data[at] <= _NINE:
            return -1_000_000
        value = value * 10 + int(data[at]) - _ZERO
    return value


@kernel
def _days_in(year: int, month: int) -> int:
    if month == 2:  # noqa: PLR2004 - February
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


@kernel
def _days_since_1970(year: int, month: int, day: int) -> int:
    """Count days in the proleptic Gregorian calendar, with years that begin in March."""
    shifted = year - (month <= 2)  # noqa: PLR2004
    era = shifted // 400
    year_of_era = shifted - era * 400
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1  # noqa: PLR2004
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


@kernel
def gather(data: np.ndarray, starts: np.ndarray, ends: np.ndarray, offsets: np.ndarray, out: np.ndarray) -> None:
    """Copy texts one after the other; `offsets` says where each belongs."""
    for i in range(len(starts)):
        to = offsets[i]
        for at in range(starts[i], ends[i]):
            out[to] = data[at]
            to += 1
