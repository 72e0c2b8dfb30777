"""The latency of a task's events follows from their timestamps and the moment of the commit."""

from __future__ import annotations

import sys
from bisect import bisect_left
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_apps.monitoring.arrivals import Arrivals
from spark_apps.monitoring.latency import BOUNDS
from spark_apps.monitoring.task_counts import TaskCounts

NOW_MS = 1_800_000_000_000
AGES = st.lists(st.lists(st.integers(0, 3 * 86_400_000), max_size=50), min_size=1, max_size=4)


def noted(arrivals: Arrivals, ages_ms: list[int]) -> None:
    """Note an Arrow batch of events with these ages, in milliseconds before `NOW_MS`."""
    times = [(NOW_MS - age) * 1000 for age in ages_ms]
    arrivals.note(pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC")))


def test_latency_is_from_the_timestamps_to_now() -> None:
    """Latency is the time since the events' timestamps, over all batches of a task, even for a timestamp of 0."""
    arrivals, counts = Arrivals(), TaskCounts()
    arrivals.count_latency(counts)
    assert counts == TaskCounts()
    now = datetime.now(UTC)
    for ages in ([], [5, 3], [10]):
        arrivals.note(pa.array([now - timedelta(seconds=age) for age in ages], pa.timestamp("us", "UTC")))
    assert (now - arrivals.first).total_seconds() == pytest.approx(10, abs=0.01)
    arrivals.count_latency(counts)
    waited = (datetime.now(UTC) - now).total_seconds()
    assert 10 <= counts.latency_most <= 10.01 + waited
    assert 18 <= counts.latency_sum <= 18.01 + 3 * waited
    arrivals.note(pa.array([0, now], pa.timestamp("us", "UTC")))
    assert arrivals.first == datetime(1970, 1, 1, tzinfo=UTC)


@given(AGES, st.integers(0, 600_000))
def test_percentiles_are_within_one_bucket_of_the_true_ones(batches: list[list[int]], until_commit_ms: int) -> None:
    """Whatever ages events have, and however long the commit takes, p50 and p99 are at most one bucket off."""
    clock = [NOW_MS / 1000]
    arrivals, counts = Arrivals(lambda: clock[0]), TaskCounts()
    for ages in batches:
        noted(arrivals, ages)
    clock[0] += until_commit_ms / 1000
    arrivals.count_latency(counts)
    latencies = [(age + until_commit_ms) / 1000 for ages in batches for age in ages]
    counts.events = len(latencies)
    assert counts.latency_seconds.total() == len(latencies)
    if latencies:
        assert counts.latency_most_seconds == pytest.approx(max(latencies))
        for found, share in ((counts.latency_p50_seconds, 50), (counts.latency_p99_seconds, 99)):
            true = float(np.percentile(latencies, share, method="inverted_cdf"))
            assert abs(bisect_left(BOUNDS, found) - bisect_left(BOUNDS, true)) <= 1


def test_a_timestamp_of_the_future_has_no_latency() -> None:
    """An event of a producer whose clock is fast is counted in the lowest bucket, and the others keep their latency."""
    arrivals, counts = Arrivals(lambda: NOW_MS / 1000), TaskCounts()
    noted(arrivals, [-3_600_000, 0, 10_000])
    arrivals.count_latency(counts)
    assert counts.latency_seconds[str(BOUNDS[0])] == 2
    assert counts.latency_seconds.total() == 3
    assert counts.latency_most == 10


def test_the_memory_of_timestamps_does_not_grow_with_events() -> None:
    """A task that noted a million timestamps of a year holds as many bytes as one that noted a single timestamp."""
    arrivals = Arrivals(lambda: NOW_MS / 1000)
    noted(arrivals, [0])
    before = held(arrivals)
    for part in range(10):
        times = (NOW_MS - np.arange(part, 31_536_000_000, 315_360)) * 1000
        arrivals.note(pa.array(times).cast(pa.timestamp("us", "UTC")))
    assert held(arrivals) <= before + 100


def held(arrivals: Arrivals) -> int:
    """Return the bytes of all that it holds."""
    return sum(
        value.nbytes if isinstance(value, np.ndarray) else sys.getsizeof(value) for value in vars(arrivals).values()
    )
