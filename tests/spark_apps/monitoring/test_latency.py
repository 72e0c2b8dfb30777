"""Latencies are counted in buckets, and a percentile is at most one bucket off the true one."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_apps.monitoring.latency import BOUNDS, LABELS, counted, cumulative, percentiles

SECONDS = st.lists(st.floats(0, 400_000), min_size=1, max_size=300)


def bucket(seconds: float) -> int:
    """Return the number of the bucket that a latency is in."""
    return bisect_left(BOUNDS, seconds)


def histogram(seconds: list[float]) -> Counter[str]:
    """Count each latency once."""
    return counted(np.array(seconds), np.ones(len(seconds), np.int64))


def test_buckets_grow_by_a_fourth_root_of_two() -> None:
    """The buckets begin at 10 ms, end behind some hours, and each is 2^(1/4) wide, within rounding to three digits."""
    assert BOUNDS[0] == 0.01
    assert BOUNDS[-1] > 12 * 3600
    assert np.diff(np.log2(BOUNDS)) == pytest.approx(0.25, abs=0.01)


@given(SECONDS)
def test_a_percentile_is_at_most_one_bucket_off_the_true_one(seconds: list[float]) -> None:
    """Whatever latencies there are, a percentile of their buckets is at most one bucket off numpy's."""
    shares = (0.01, 0.5, 0.9, 0.99, 1.0)
    true = np.percentile(seconds, [100 * share for share in shares], method="inverted_cdf")
    for found, wanted in zip(percentiles(histogram(seconds), shares, max(seconds)), true, strict=True):
        assert found is not None
        assert found <= max(seconds)
        assert abs(bucket(found) - bucket(wanted)) <= 1


@given(SECONDS, SECONDS)
def test_buckets_of_two_tasks_add_up(one: list[float], other: list[float]) -> None:
    """The buckets of two tasks added are the buckets of all their events, so percentiles of batches can be combined."""
    assert histogram(one) + histogram(other) == histogram(one + other)


def test_a_latency_on_a_bound_is_in_the_bucket_below_it() -> None:
    """A bucket includes its upper bound, as Prometheus' label le says; what exceeds all bounds is in +Inf."""
    assert histogram([*BOUNDS, BOUNDS[-1] + 1]) == Counter(dict.fromkeys(LABELS, 1))


def test_cumulative_buckets_count_what_is_below() -> None:
    """Each cumulative bucket includes all smaller ones; the last one has all events; empty ones are not left out."""
    found = cumulative(Counter({"0.01": 2, "0.0119": 3, "+Inf": 4}))
    assert list(found) == list(LABELS)
    assert (found["0.01"], found["0.0119"], found["0.0141"], found["+Inf"]) == (2, 5, 5, 9)


def test_no_events_have_no_percentile() -> None:
    """Without events there is no percentile."""
    assert percentiles(Counter(), (0.5, 0.99), 0.0) == [None, None]
