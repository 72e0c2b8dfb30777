"""Read the plain values of events into columns. A plain value has one of the usual forms of its type.

The scanner (scanner.py) finds where each value is. A value in another form makes its event not plain.
"""

from __future__ import annotations

import numpy as np
from semistream.kernels import inlined, kernel

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
CONTINUES = 0x80  # 10xxxxxx: a continuation byte of UTF-8
_COLON, _T, _Z, _EIGHT = (ord(c) for c in ":TZ8")
_UUID_LENGTH, _VERSION, _VARIANT = 36, 14, 19  # the latter two: places of the digits of version and variant
_WORDS = np.array([0, 8, 16, 24, _UUID_LENGTH - WIDTH])  # where the words that cover a UUID begin
_DASHES, _ZEROS = each(ord("-")), each(ord("0"))
_DASH_PLACES = np.frombuffer(
    b"".join(bytes(0xFF * (at + i in (8, 13, 18, 23)) for i in range(WIDTH)) for at in _WORDS.tolist()), np.uint64
)
_EXACT_INTEGER = 2**53  # doubles hold all whole numbers up to this one exactly
_POWERS = np.array([float(10**n) for n in range(23)])  # and these powers of ten
_NO_NUMBER = -(2**63)  # stands for a number that is not plain


@inlined
def read_value(
    data: np.ndarray,
    start: int,
    stop: int,
    kind: int,
    nullable: bool,  # noqa: FBT001 - a property of the field, as `kind` is
    place: tuple[int, int],
    numbers: np.ndarray,
    floats: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
) -> bool:
    """Read one value into its column; return False if it is not a plain value of its type."""
    lead = data[start]
    quoted = lead == QUOTE
    if stop - start == 4 and lead == 110:  # noqa: PLR2004 - null
        starts[place] = -1
        return nullable
    starts[place], ends[place] = start + quoted, stop - quoted
    if kind in (INTEGER, UNSIGNED):
        word, width = word_at(data, start), stop - start
        if width <= WIDTH and not leading(not_digits(word), width):
            numbers[place] = decimal(word, width)
        else:
            numbers[place] = _NO_NUMBER if quoted or lead > NINE else _integer(data, start, stop)
        return bool(numbers[place] != _NO_NUMBER and (kind == INTEGER or 0 <= numbers[place] <= LARGEST_UNSIGNED))
    if kind == FLOATING:
        floats[place] = np.nan if quoted or lead > NINE else _floating(data, start, stop)
        return not np.isnan(floats[place])
    if kind == TEXT:
        return quoted and _is_short(data, start + 1, stop - 1)
    if kind == UUID:
        return quoted and _is_uuid(data, start + 1, stop - 1)
    if kind == TIMESTAMP and quoted:
        numbers[place] = _milliseconds(data, start + 1, stop - 1)
        return bool(numbers[place] != _NO_NUMBER)
    return False


@kernel
def _integer(data: np.ndarray, start: int, stop: int) -> int:
    """Read a whole number of at most 18 digits; return _NO_NUMBER if there is another byte."""
    negative = data[start] == MINUS
    value = 0
    for at in range(start + negative, stop):
        if not ZERO <= data[at] <= NINE:
            return _NO_NUMBER
        value = value * 10 + int(data[at]) - ZERO
    return -value if negative else value


@kernel
def _floating(data: np.ndarray, start: int, stop: int) -> float:
    """Read a number as the nearest double; return NaN if that takes more than one rounding.

    Significand and power of ten are exact doubles, so one operation rounds to the nearest double (W. D. Clinger, How to
    Read Floating Point Numbers Accurately, 1990).
    """
    whole = _integer(data, start, stop)
    if whole != _NO_NUMBER:
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
    """Return whether a byte begins an exponent."""
    return byte | 0x20 == 0x65  # noqa: PLR2004 - E or e


@kernel
def _is_short(data: np.ndarray, start: int, stop: int) -> bool:
    """Return whether a text has at most LONGEST_TEXT characters."""
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
    """Return whether a text is a UUID in lower case that the warehouse takes (spark_apps/pipeline/fields.py)."""
    if stop - start != _UUID_LENGTH:
        return False
    for i in range(len(_WORDS)):
        word, dashes = word_at(data, start + _WORDS[i]), _DASH_PLACES[i]
        if (word ^ _DASHES) & dashes or not is_hex(word & ~dashes | _ZEROS & dashes):
            return False
    return bool(data[start + _VERSION] < _EIGHT or data[start + _VARIANT] >= _EIGHT)


_SHORT, _LONG = 20, 24  # 2026-01-02T03:04:05Z, and with milliseconds
_MILLISECONDS_A_DAY = 86_400_000


@kernel
def _milliseconds(data: np.ndarray, start: int, stop: int) -> int:
    """Read a UTC time in one of the two plain forms as milliseconds since 1970; return _NO_NUMBER for another form."""
    length = stop - start
    if length not in (_SHORT, _LONG) or data[stop - 1] != _Z or data[start + 10] != _T:
        return _NO_NUMBER
    if data[start + 4] != MINUS or data[start + 7] != MINUS:
        return _NO_NUMBER
    if data[start + 13] != _COLON or data[start + 16] != _COLON or (length == _LONG and data[start + 19] != DOT):
        return _NO_NUMBER
    year, month, day = _digits(data, start, 4), _digits(data, start + 5, 2), _digits(data, start + 8, 2)
    hour, minute, second = _digits(data, start + 11, 2), _digits(data, start + 14, 2), _digits(data, start + 17, 2)
    fraction = _digits(data, start + 20, 3) if length == _LONG else 0
    if year < FIRST_YEAR or not 1 <= month <= 12:  # noqa: PLR2004
        return _NO_NUMBER
    before = first_day(year, month) - 1
    if not 1 <= day < first_day(year, month + 1) - before:
        return _NO_NUMBER
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60 and fraction >= 0):  # noqa: PLR2004
        return _NO_NUMBER
    return (before + day) * _MILLISECONDS_A_DAY + ((hour * 60 + minute) * 60 + second) * 1000 + fraction


@kernel
def _digits(data: np.ndarray, start: int, count: int) -> int:
    """Read a number of `count` digits; return a negative number if a byte is not a digit."""
    value = 0
    for at in range(start, start + count):
        if not ZERO <= data[at] <= NINE:
            return -1_000_000
        value = value * 10 + int(data[at]) - ZERO
    return value
