"""Takes the plain values of events into their columns: what each type's values look like when nothing is odd.

The scanner (event_scanner.py) finds where a value is; here it is read, or left to the careful reader.
"""

from __future__ import annotations

import numpy as np
from semistream.kernel import inlined, kernel

from spark_apps.events.words import WIDTH, decimal, each, is_hex, leading, not_digits, word_at
from spark_apps.pipeline.fields import (
    FIRST_YEAR,
    FLOATING,
    INTEGER,
    LARGEST_UNSIGNED,
    LONGEST_TEXT,
    TEXT,
    TIMESTAMP,
    UNSIGNED,
    UUID,
)  # fmt: skip
from spark_apps.warehouse.civil_days import first_day

QUOTE, DOT, MINUS, PLUS, ZERO, NINE = (ord(c) for c in '".-+09')
CONTINUES = 0x80  # 10xxxxxx: a byte of a character that has begun
_COLON, _T, _Z, _EIGHT = (ord(c) for c in ":TZ8")
_UUID_LENGTH, _VERSION, _VARIANT = 36, 14, 19  # and where these digits are
_WORDS = np.array([0, 8, 16, 24, _UUID_LENGTH - WIDTH])  # that have all its characters
_DASHES, _ZEROS = each(ord("-")), each(ord("0"))
_WHERE_DASHES = np.frombuffer(
    b"".join(bytes(0xFF * (at + i in (8, 13, 18, 23)) for i in range(WIDTH)) for at in _WORDS.tolist()), np.uint64
)
_EXACT_INTEGER = 2**53  # doubles hold all whole numbers up to it
_POWERS = np.array([float(10**n) for n in range(23)])  # and these powers of ten
_NOTHING = -(2**63)  # in place of a number that is not plain


@inlined
def take_value(
    data: np.ndarray,
    start: int,
    stop: int,
    kind: int,
    nullable: bool,  # noqa: FBT001 - of the field, as the kind is
    place: tuple[int, int],
    numbers: np.ndarray,
    floats: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
) -> bool:
    """Take one value into its column; false when it is not plainly of its kind."""
    first = data[start]
    quoted = first == QUOTE
    if stop - start == 4 and first == 110:  # noqa: PLR2004 - null
        starts[place] = -1
        return nullable
    starts[place], ends[place] = start + quoted, stop - quoted
    if kind in (INTEGER, UNSIGNED):
        word, width = word_at(data, start), stop - start
        if width <= WIDTH and not leading(not_digits(word), width):
            numbers[place] = decimal(word, width)
        else:
            numbers[place] = _NOTHING if quoted or first > NINE else _integer(data, start, stop)
        return bool(numbers[place] != _NOTHING and (kind == INTEGER or 0 <= numbers[place] <= LARGEST_UNSIGNED))
    if kind == FLOATING:
        floats[place] = np.nan if quoted or first > NINE else _floating(data, start, stop)
        return not np.isnan(floats[place])
    if kind == TEXT:
        return quoted and _is_short(data, start + 1, stop - 1)
    if kind == UUID:
        return quoted and _is_uuid(data, start + 1, stop - 1)
    if kind == TIMESTAMP and quoted:
        numbers[place] = _milliseconds(data, start + 1, stop - 1)
        return bool(numbers[place] != _NOTHING)
    return False


@kernel
def _integer(data: np.ndarray, start: int, stop: int) -> int:
    """Read a whole number of at most 18 digits."""
    negative = data[start] == MINUS
    value = 0
    for at in range(start + negative, stop):
        if not ZERO <= data[at] <= NINE:
            return _NOTHING
        value = value * 10 + int(data[at]) - ZERO
    return -value if negative else value


@kernel
def _floating(data: np.ndarray, start: int, stop: int) -> float:
    """Read a number as the nearest double, NaN when that takes more than one rounding.

    Significand and power of ten are both exact doubles here, so that one operation rounds to the nearest (W. D.
    Clinger, How to Read Floating Point Numbers Accurately, 1990).
    """
    whole = _integer(data, start, stop)
    if whole != _NOTHING:
        return float(whole)
    significand, power, after_dot = 0, 0, 0
    at = start + (data[start] == MINUS)
    while at < stop and not is_exponent(data[at]):
        if data[at] == DOT:
            after_dot = 1
        else:
            significand = significand * 10 + int(data[at]) - ZERO
            power -= after_dot
            if significand > _EXACT_INTEGER:
                return np.nan
        at += 1
    if at < stop:
        at += 1
        negative = data[at] == MINUS
        at += negative or data[at] == PLUS
        if stop - at > 3:  # noqa: PLR2004 - digits, more than any double's exponent has
            return np.nan
        exponent = _digits(data, at, stop - at)
        power += -exponent if negative else exponent
    if abs(power) >= len(_POWERS):
        return np.nan
    value = significand * _POWERS[power] if power >= 0 else significand / _POWERS[-power]
    return float(-value if data[start] == MINUS else value)


@kernel
def is_exponent(byte: int) -> bool:
    """Tell whether an exponent begins there."""
    return byte | 0x20 == 0x65  # noqa: PLR2004 - E or e


@kernel
def _is_short(data: np.ndarray, start: int, stop: int) -> bool:
    """Tell whether a text has at most so many characters as a text may."""
    if stop - start <= LONGEST_TEXT:
        return True
    characters = 0
    for at in range(start, stop):
        characters += data[at] & 0xC0 != CONTINUES
        if characters > LONGEST_TEXT:
            return False
    return True


@kernel
def _is_uuid(data: np.ndarray, start: int, stop: int) -> bool:
    """Tell whether 36 characters are a UUID in lower case that the warehouse takes (fields.py)."""
    if stop - start != _UUID_LENGTH:
        return False
    for i in range(len(_WORDS)):
        word, where = word_at(data, start + _WORDS[i]), _WHERE_DASHES[i]
        if (word ^ _DASHES) & where or not is_hex(word & ~where | _ZEROS & where):
            return False
    return bool(data[start + _VERSION] < _EIGHT or data[start + _VARIANT] >= _EIGHT)


_SHORT, _LONG = 20, 24  # 2026-01-02T03:04:05Z, and with milliseconds
_MILLISECONDS_A_DAY = 86_400_000


@kernel
def _milliseconds(data: np.ndarray, start: int, stop: int) -> int:
    """Read a UTC time of one of the two plain forms as milliseconds since 1970."""
    length = stop - start
    if length not in (_SHORT, _LONG) or data[stop - 1] != _Z or data[start + 10] != _T:
        return _NOTHING
    if data[start + 4] != MINUS or data[start + 7] != MINUS:
        return _NOTHING
    if data[start + 13] != _COLON or data[start + 16] != _COLON or (length == _LONG and data[start + 19] != DOT):
        return _NOTHING
    year, month, day = _digits(data, start, 4), _digits(data, start + 5, 2), _digits(data, start + 8, 2)
    hour, minute, second = _digits(data, start + 11, 2), _digits(data, start + 14, 2), _digits(data, start + 17, 2)
    fraction = _digits(data, start + 20, 3) if length == _LONG else 0
    if year < FIRST_YEAR or not 1 <= month <= 12:  # noqa: PLR2004
        return _NOTHING
    before = first_day(year, month) - 1
    if not 1 <= day < first_day(year, month + 1) - before:
        return _NOTHING
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60 and fraction >= 0):  # noqa: PLR2004
        return _NOTHING
    return (before + day) * _MILLISECONDS_A_DAY + ((hour * 60 + minute) * 60 + second) * 1000 + fraction


@kernel
def _digits(data: np.ndarray, start: int, count: int) -> int:
    value = 0
    for at in range(start, start + count):
        if not ZERO <= data[at] <= NINE:
            return -1_000_000
        value = value * 10 + int(data[at]) - ZERO
    return value
