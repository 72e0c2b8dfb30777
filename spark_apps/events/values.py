"""Read the plain values of events into columns. A plain value has one of the usual forms of its type.

A value in another form makes its event not plain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from semistream.kernels import Integer, inlined, kernel

from spark_apps.events.base64_text import decoded_size
from spark_apps.events.escapes import CONTINUES, text_size, wide_character
from spark_apps.events.times import NO_TIME, in_range, read_date, read_time
from spark_apps.events.tokens import (
    DOT,
    MINUS,
    NINE,
    NOTHING,
    PLUS,
    QUOTE,
    ZERO,
    is_exponent,
    number_end,
    scalar_end,
    string_end,
    value_end,
)
from spark_apps.events.words import WIDTH, decimal, each, is_hex, leading, not_digits, word_at
from spark_apps.pipeline.fields import (
    BOOLEAN,
    BYTES,
    COUNTED_TIME,
    DATE,
    DECIMAL,
    FLOATING,
    INTEGER,
    JSON,
    SCANNED_DIGITS,
    TEXT,
    TIMESTAMP,
    UUID,
)
from spark_apps.pipeline.json_values import LONGEST_TEXT

if TYPE_CHECKING:
    from spark_apps.events.layout import Layout

_EIGHT, _N, _T = ord("8"), ord("n"), ord("t")
_UUID_LENGTH, _VERSION, _VARIANT = 36, 14, 19  # the latter two: places of the digits of version and variant
_WORDS = np.array([0, 8, 16, 24, _UUID_LENGTH - WIDTH])  # where the words that cover a UUID begin
_DASHES, _ZEROS, _LOWER_CASE = each(ord("-")), each(ord("0")), each(0x20)
_DASH_PLACES = np.frombuffer(
    b"".join(bytes(0xFF * (at + i in (8, 13, 18, 23)) for i in range(WIDTH)) for at in _WORDS.tolist()), np.uint64
)
_EXACT_INTEGER = 2**53  # doubles hold all whole numbers up to this one exactly
_POWERS = np.array([float(10**n) for n in range(23)])  # and these powers of ten
_MOST_DIGITS = 19  # that surely fit into 64 bits without a sign
_NULL = -1  # where a value begins that is null or missing


class Columns(NamedTuple):
    """What the scanner writes, by field and event.

    Attributes:
        numbers: an integer, a decimal without its point, a time in milliseconds, a day, or 1 for true.
        floats: the value of a FLOATING; NaN if its text is yet to be read.
        starts: where a value begins, without the quote; -1 if it is null or missing.
        ends: where it ends.
        sizes: the bytes of a text without its escapes, of JSON, or of what base64 stands for.
    """

    numbers: np.ndarray
    floats: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    sizes: np.ndarray


@inlined
def read_value(data: np.ndarray, start: int, end: int, layout: Layout, field: int, event: int, columns: Columns) -> int:
    """Read the value at `start` into its column; return where it ends, or -1 if it is not a plain value of its type."""
    escaped, kind, place = False, layout.kinds[field], (field, event)
    if start < end and data[start] == QUOTE:
        last, escaped = string_end(data, start, end)
        stop = last + 1
    else:
        stop = value_end(data, start, end) if kind == JSON else scalar_end(data, start, end)
        last = stop
    if last < 0:
        return NOTHING
    lead = data[start]
    quoted = lead == QUOTE
    if stop - start == 4 and lead == _N:  # noqa: PLR2004 - null
        columns.starts[place] = _NULL
        return stop if layout.nullable[field] else NOTHING
    if kind == JSON:
        columns.starts[place], columns.ends[place], columns.sizes[place] = start, stop, stop - start
        return stop
    first = start + quoted
    columns.starts[place], columns.ends[place] = first, last
    if lead > NINE:
        columns.numbers[place] = lead == _T
        good = kind == BOOLEAN
    elif not quoted or (layout.quoted[field] and number_end(data, first, last) == last):
        good = _read_number(data, first, last, kind, layout, place, columns)
    else:
        good = _read_text(data, first, last, escaped, kind, layout, place, columns)
    return stop if good else NOTHING


@inlined
def read_text(data: np.ndarray, start: int, end: int, layout: Layout, field: int, event: int, columns: Columns) -> bool:
    """Read a text that is no JSON into its column; return False if it is not plain."""
    kind, place, at = layout.kinds[field], (field, event), start
    columns.starts[place], columns.ends[place] = start, end
    if end - start > LONGEST_TEXT:
        return False
    while at < end:
        width = 1 if data[at] < CONTINUES else wide_character(data, at, end)
        if not width:
            return False
        at += width
    if kind in (TEXT, UUID, TIMESTAMP):
        return _read_text(data, start, end, False, kind, layout, place, columns)  # noqa: FBT003 - no escapes
    return number_end(data, start, end) == end and _read_number(data, start, end, kind, layout, place, columns)


@inlined
def _read_text(
    data: np.ndarray,
    start: int,
    stop: int,
    escaped: bool,  # noqa: FBT001 - a property of the string
    kind: int,
    layout: Layout,
    place: tuple[int, int],
    columns: Columns,
) -> bool:
    if kind == TEXT:
        size, characters = stop - start, stop - start
        if escaped or size > LONGEST_TEXT:
            size, characters = text_size(data, start, stop)
        columns.sizes[place] = size
        return size >= 0 and characters <= LONGEST_TEXT
    if kind == UUID:
        return not escaped and _is_uuid(data, start, stop)
    if kind == TIMESTAMP:
        zone, end = layout.zones[place[0]], layout.zones[place[0] + 1]
        columns.numbers[place] = read_time(
            data, start, stop, layout.zone_starts[zone:end], layout.zone_offsets[zone:end]
        )
        return bool(columns.numbers[place] != NO_TIME)
    if kind == DATE:
        columns.numbers[place] = read_date(data, start, stop)
        return bool(columns.numbers[place] != NO_TIME)
    if kind == BYTES:
        columns.sizes[place] = decoded_size(data, start, stop)
        return bool(0 <= columns.sizes[place] <= LONGEST_TEXT)
    return False


@inlined
def _read_number(
    data: np.ndarray, start: int, stop: int, kind: int, layout: Layout, place: tuple[int, int], columns: Columns
) -> bool:
    field = place[0]
    if kind == INTEGER:
        word, width = word_at(data, start), stop - start
        if width <= WIDTH and not leading(not_digits(word), width):
            number, whole = decimal(word, width), True
        else:
            number, whole = _integer(data, start, stop)
        columns.numbers[place] = number
        return whole and layout.least[field] <= number <= layout.most[field]
    if kind == FLOATING:
        columns.floats[place] = _floating(data, start, stop)
        return True
    if kind in (DECIMAL, COUNTED_TIME):
        number, rest, whole = _shifted(data, start, stop, layout.fractions[field])
        columns.numbers[place] = number
        if kind == DECIMAL:
            return whole and not rest and layout.least[field] <= number <= layout.most[field]
        columns.numbers[place] -= rest and data[start] == MINUS  # the millisecond that it is in
        return whole and in_range(columns.numbers[place]) != NO_TIME
    return False


@kernel
def _shifted(data: np.ndarray, start: int, stop: int, places: int) -> tuple[Integer, bool, bool]:
    """Read a number whose point is moved to the right.

    Returns:
        The number without its fraction, whether it had one that is not zero, and whether it is a plain one.
    """
    negative = data[start] == MINUS
    number, used, moved, rest, behind = 0, 0, 0, False, False
    for at in range(start + negative, stop):
        byte = data[at]
        if byte == DOT:
            behind = True
        elif not ZERO <= byte <= NINE:
            return 0, False, False
        elif behind and moved == places:
            rest = rest or byte != ZERO
        else:
            number = number * 10 + int(byte) - ZERO
            used += used > 0 or byte != ZERO
            moved += behind
            if used > SCANNED_DIGITS:
                return 0, False, False
    for _ in range(places - moved):
        number *= 10
        used += number > 0
        if used > SCANNED_DIGITS:
            return 0, False, False
    return -number if negative else number, rest, True


@kernel
def _integer(data: np.ndarray, start: int, stop: int) -> tuple[Integer, bool]:
    """Read a whole number, and return whether it is one that 63 bits and a sign hold."""
    negative = data[start] == MINUS
    start += negative
    value, whole = np.uint64(0), stop - start <= _MOST_DIGITS
    for at in range(start, stop):
        whole = whole and ZERO <= data[at] <= NINE
        value = value * np.uint64(10) + np.uint64(data[at] - ZERO)
    number = np.int64(value)
    return -number if negative else number, bool(whole and number >= 0)


@kernel
def _floating(data: np.ndarray, start: int, stop: int) -> float:
    """Read a number as the nearest double; return NaN if that takes more than one rounding.

    Significand and power of ten are exact doubles, so one operation rounds to the nearest double (W. D. Clinger, How to
    Read Floating Point Numbers Accurately, 1990).
    """
    number, whole = _integer(data, start, stop)
    if whole:
        return float(number)
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
        exponent, _ = _integer(data, at, stop)
        power += -exponent if negative else exponent
    if abs(power) >= len(_POWERS):
        return np.nan
    value = significand * _POWERS[power] if power >= 0 else significand / _POWERS[-power]
    return float(-value if data[start] == MINUS else value)


@kernel
def _is_uuid(data: np.ndarray, start: int, stop: int) -> bool:
    """Return whether a text is a UUID that the warehouse takes (spark_apps/pipeline/fields.py), in either case."""
    if stop - start != _UUID_LENGTH:
        return False
    for i in range(len(_WORDS)):
        word, dashes = word_at(data, start + _WORDS[i]), _DASH_PLACES[i]
        if (word ^ _DASHES) & dashes or not is_hex((word | _LOWER_CASE) & ~dashes | _ZEROS & dashes):
            return False
    return bool(data[start + _VERSION] < _EIGHT or data[start + _VARIANT] >= _EIGHT)
