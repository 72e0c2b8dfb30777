"""A histogram of latencies: which buckets there are, and percentiles of what was counted in them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

# Upper bounds in seconds, from 10 ms to two days. Each is 2^(1/4) of the one before, in three digits.
BOUNDS = tuple(float(f"{0.01 * 2 ** (step / 4):.3g}") for step in range(97))
LABELS = (*map(str, BOUNDS), "+Inf")  # as Prometheus calls the buckets


def counted(seconds: NDArray[np.float64], events: NDArray[np.int64]) -> Counter[str]:
    """Count latencies, each with its number of events, by the label of their bucket."""
    sums = np.bincount(np.searchsorted(BOUNDS, seconds), weights=events, minlength=len(LABELS))
    return Counter({LABELS[bucket]: int(sums[bucket]) for bucket in np.flatnonzero(sums)})


def cumulative(buckets: Mapping[str, int]) -> dict[str, int]:
    """Return for each bucket the number of events in it and in all buckets below it."""
    return dict(zip(LABELS, accumulate(buckets.get(label, 0) for label in LABELS), strict=True))


def percentile(buckets: Mapping[str, int], share: float, most: float) -> float | None:
    """Return the latency that a share of all events does not exceed; None if there are no events.

    Within a bucket the events are taken as evenly spread, as Prometheus' histogram_quantile does.

    Args:
        buckets: number of events by label.
        share: for example 0.99.
        most: the longest latency.
    """
    wanted = share * sum(buckets.values())
    if not wanted:
        return None
    seen = 0
    for upper, events in sorted((float(label), events) for label, events in buckets.items()):
        if seen + events >= wanted:
            place = bisect_left(BOUNDS, upper)
            lower = BOUNDS[place - 1] if place else 0.0
            highest = min(upper, most)
            return lower + max(0.0, highest - lower) * (wanted - seen) / events
        seen += events
    return most
