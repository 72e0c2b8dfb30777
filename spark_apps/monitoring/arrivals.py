"""The Kafka timestamps of a task's events, from which their latency follows at the commit."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from spark_apps.monitoring import latency

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spark_apps.monitoring.task_counts import TaskCounts

_MILLISECONDS = pa.timestamp("ms", "UTC")
_MANTISSA_BITS, _KEPT_BITS = 52, 5  # of a float64: 32 bins between two powers of 2, so a bin is at most 3 % wide
_DROPPED = _MANTISSA_BITS - _KEPT_BITS
_FIRST = int(np.float64(1).view(np.int64)) >> _DROPPED
_BINS = 44 << _KEPT_BITS  # up to 2^44 ms, 550 years: the age of any timestamp


class Arrivals:
    """The Kafka timestamps of a task's events: their number, the earliest, their sum, and how old they were.

    The commit's moment is not known yet when an event comes. So the timestamps are counted by their age at the task's
    first event, in fine bins, as many for one event as for a million. A latency is such an age, and the time since.

    Args:
        clock: the Unix time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._count, self._total = 0, 0
        self._first: int | None = None
        self._since = 0  # when the first event came, in milliseconds
        self._ages = np.zeros(_BINS, np.int64)

    @property
    def first(self) -> datetime:
        """The earliest timestamp so far, in UTC; 1970-01-01 if there is none."""
        return datetime.fromtimestamp((self._first or 0) / 1000, UTC)

    def note(self, timestamps: pa.Array) -> None:
        """Add the timestamps of an Arrow batch."""
        times = timestamps.cast(_MILLISECONDS, safe=False).cast(pa.int64()).to_numpy()
        if not len(times):
            return
        first = int(times.min())
        if self._first is None:
            self._first, self._since = first, round(self._clock() * 1000)
        self._count += len(times)
        self._total += int(times.sum())
        self._first = min(self._first, first)
        self._ages += np.bincount(_bins(self._since - times), minlength=_BINS)

    def count_latency(self, counts: TaskCounts) -> None:
        """Add the latency of all events up to now: the caller has just committed them."""
        if self._first is None:
            return
        now = self._clock() * 1000
        most = (now - self._first) / 1000
        counts.latency_sum += (self._count * now - self._total) / 1000
        counts.latency_most = max(counts.latency_most, most)
        (bins,) = np.nonzero(self._ages)
        seconds = np.clip((_ages(bins) + now - self._since) / 1000, 0, most)
        counts.latency_seconds += latency.counted(seconds, self._ages[bins])


def _bins(ages: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the bin of each age in milliseconds: a float's exponent and the first bits of its mantissa.

    A timestamp of the future has the age 0, because the clock of a producer can be fast.
    """
    shifted = np.maximum(ages, 0) + 1.0
    return (shifted.view(np.int64) >> _DROPPED) - _FIRST


def _ages(bins: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the age in the middle of each bin."""
    lower: NDArray[np.float64] = ((bins + _FIRST) << _DROPPED).view(np.float64)
    upper: NDArray[np.float64] = ((bins + _FIRST + 1) << _DROPPED).view(np.float64)
    return (lower + upper) / 2 - 1.0
