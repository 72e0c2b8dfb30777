"""A histogram of latencies: which buckets there are, and percentiles of what was counted in them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


def percentiles(buckets: Mapping[str, int], shares: Sequence[float], most: float) -> list[float | None]:
    """Return for each share the latency that so many of all events do not exceed; None if there are no events.

    Within a bucket the events are taken as evenly spread, as Prometheus' histogram_quantile does.

    Args:
        buckets: number of events by label.
        shares: for example 0.99.
        most: the longest latency.
    """
    labels = sorted(buckets, key=float)
    sums = [0, *accumulate(map(buckets.__getitem__, labels))]
    return [_percentile(labels, sums, share * sums[-1], most) if sums[-1] else None for share in shares]


def _percentile(labels: Sequence[str], sums: Sequence[int], wanted: float, most: float) -> float:
    """Return the latency that a number of events do not exceed.

    Args:
        labels: of the buckets, in order.
        sums: events below each bucket, and all events.
        wanted: the number of events.
        most: the longest latency.
    """
    bucket = bisect_left(sums, wanted, 1) - 1
    upper = float(labels[bucket])
    place = bisect_left(BOUNDS, upper)
    lower = BOUNDS[place - 1] if place else 0.0
    inside = (wanted - sums[bucket]) / (sums[bucket + 1] - sums[bucket])
    return min(lower + (min(upper, most) - lower) * inside, most)
