"""Time zones as arrays for kernels: which offset a local time has."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import numpy as np

UNKNOWN = -(2**63)  # the offset of a time that the careful reader looks up
_FIRST, _END = datetime(1970, 1, 1), datetime(2100, 1, 1)  # noqa: DTZ001 - local times
_DAY, _MILLISECOND = timedelta(days=1), timedelta(milliseconds=1)


@cache
def local_offsets(zone: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the local times (milliseconds since 1970) from which on a zone has another offset, and those offsets.

    They are those of 1970 to 2099. As in zoneinfo, a local time that occurs twice has the offset of the first one. One
    that the clock skips has the offset from before. Without a zone they are empty.
    """
    starts: list[int] = []
    offsets: list[int] = []
    if zone:
        known = ZoneInfo(zone)
        moment = _FIRST
        while moment < _END:
            offset = _offset(known, moment)
            if not offsets or offset != offsets[-1]:
                starts.append((_change(known, moment) - _FIRST) // _MILLISECOND)
                offsets.append(offset)
            moment += _DAY
        starts.append((_END - _FIRST) // _MILLISECOND)
        offsets.append(UNKNOWN)
    return np.array(starts, np.int64), np.array(offsets, np.int64)


def _offset(zone: ZoneInfo, moment: datetime) -> int:
    offset = moment.replace(tzinfo=zone).utcoffset()
    return 0 if offset is None else offset // _MILLISECOND


def _change(zone: ZoneInfo, after: datetime) -> datetime:
    """Return the first second of the offset that is new at `after`, on the day before it."""
    if after == _FIRST:
        return _FIRST
    same, before = after, after - _DAY
    while same - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=(same - before) // timedelta(seconds=2))
        same, before = (middle, before) if _offset(zone, middle) == _offset(zone, after) else (same, middle)
    return same
