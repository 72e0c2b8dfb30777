"""Read times as milliseconds since 1970 in UTC, from the usual forms of ISO 8601."""

from __future__ import annotations

from typing import TYPE_CHECKING

from semistream.kernels import inlined, kernel

from spark_apps.events.tokens import COLON, DOT, MINUS, NINE, PLUS, ZERO
from spark_apps.events.zones import UNKNOWN
from spark_apps.pipeline.json_values import FIRST_YEAR, LAST_YEAR
from spark_apps.warehouse.civil_days import first_day

if TYPE_CHECKING:
    import numpy as np

NO_TIME = UNKNOWN  # stands for a text that is no time, or one that only the careful reader knows
_T, _SPACE, _Z = ord("T"), ord(" "), ord("Z")
_MINUTE, _DAY = 60_000, 86_400_000  # in milliseconds
_FIRST, _END = first_day(FIRST_YEAR, 1) * _DAY, first_day(LAST_YEAR + 1, 1) * _DAY
_DATE_END, _SECONDS_END = 10, 19  # of 2026-01-02T03:04:05
_MOST_FRACTION_DIGITS = 9


@kernel
def read_time(data: np.ndarray, start: int, stop: int, zone_starts: np.ndarray, zone_offsets: np.ndarray) -> int:
    """Read 2026-01-02T03:04:05 with zero to nine digits of fraction behind it, and Z or an offset or a zone's own.

    Args:
        data: the events' bytes.
        start: where the text begins.
        stop: where it ends.
        zone_starts: from which local times on the zone has another offset; empty if there is no zone.
        zone_offsets: those offsets.
    """
    if stop - start < _SECONDS_END or data[start + 10] not in (_T, _SPACE):
        return NO_TIME
    if data[start + 13] != COLON or data[start + 16] != COLON:
        return NO_TIME
    day = read_day(data, start)
    hour, minute, second = digits(data, start + 11, 2), digits(data, start + 14, 2), digits(data, start + 17, 2)
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60) or day == NO_TIME:  # noqa: PLR2004
        return NO_TIME
    at, fraction = start + _SECONDS_END, 0
    if at < stop and data[at] == DOT:
        first, unit = at + 1, 100
        at = first
        while at < stop and ZERO <= data[at] <= NINE:
            fraction += (data[at] - ZERO) * unit
            unit //= 10
            at += 1
        if not 1 <= at - first <= _MOST_FRACTION_DIGITS:
            return NO_TIME
    local = day * _DAY + ((hour * 60 + minute) * 60 + second) * 1000 + fraction
    shift = _offset(data, at, stop) if at < stop else _zone_offset(local, zone_starts, zone_offsets)
    return NO_TIME if shift == NO_TIME else in_range(local - shift)


@kernel
def in_range(moment: int) -> int:
    """Return a time if the warehouse has such times, else NO_TIME."""
    return int(moment) if _FIRST <= moment < _END else NO_TIME


@kernel
def _zone_offset(local: int, starts: np.ndarray, offsets: np.ndarray) -> int:
    """Return the offset of a local time, NO_TIME if there is none."""
    first, last = 0, len(starts)  # the starts before `first` are not after it, those from `last` on are
    while first < last:
        middle = (first + last) // 2
        if starts[middle] <= local:
            first = middle + 1
        else:
            last = middle
    return int(offsets[first - 1]) if first > 0 else NO_TIME


@kernel
def _offset(data: np.ndarray, at: int, stop: int) -> int:
    """Read Z, +02:00, +0200 or +02 as milliseconds."""
    if stop - at == 1 and data[at] == _Z:
        return 0
    width = stop - at
    if width not in (3, 5, 6) or data[at] not in (PLUS, MINUS) or (width == 6 and data[at + 3] != COLON):  # noqa: PLR2004
        return NO_TIME
    hours, minutes = digits(data, at + 1, 2), digits(data, stop - 2, 2) if width > 3 else 0  # noqa: PLR2004
    if not (0 <= hours < 24 and 0 <= minutes < 60):  # noqa: PLR2004
        return NO_TIME
    shift = (hours * 60 + minutes) * _MINUTE
    return -shift if data[at] == MINUS else shift


@inlined
def read_day(data: np.ndarray, start: int) -> int:
    """Read the ten bytes of a date like 2026-01-02 as days since 1970."""
    if data[start + 4] != MINUS or data[start + 7] != MINUS:
        return NO_TIME
    year, month, day = digits(data, start, 4), digits(data, start + 5, 2), digits(data, start + 8, 2)
    if year < 1 or not 1 <= month <= 12:  # noqa: PLR2004
        return NO_TIME
    before = first_day(year, month) - 1
    return before + day if 1 <= day < first_day(year, month + 1) - before else NO_TIME


@kernel
def read_date(data: np.ndarray, start: int, stop: int) -> int:
    """Read 2026-01-02 as days since 1970."""
    day = read_day(data, start) if stop - start == _DATE_END else NO_TIME
    return day if day >= _FIRST // _DAY else NO_TIME


@kernel
def digits(data: np.ndarray, start: int, count: int) -> int:
    """Read a number of `count` digits; return a negative number if a byte is not a digit."""
    value = 0
    for at in range(start, start + count):
        if not ZERO <= data[at] <= NINE:
            return -1_000_000
        value = value * 10 + int(data[at]) - ZERO
    return value
