"""Times of stream tuples: joins whose times are known in advance have these."""

import numpy as np
import pytest
from semistream.joins import CHybridJoin, HybridJoin, IndexNestedLoopJoin, MeshJoin
from semistream.memory_split import Shares
from semistream.modelled_disk import DISK_7200_RPM

from benchmarks.benchmark_papers import ROW_BYTES, STREAM, Setting, relation
from benchmarks.papers_clock import LOOK_UP, seconds
from benchmarks.tuple_times import Summary, tuple_times

ROWS, PAGE_ROWS = 20_000, 1_000
R = relation(Setting(rows=ROWS), PAGE_ROWS, by_frequency=True)
MEMORY = 400_000
TUPLE = 1e-6  # seconds that the clock counts for each tuple
PAGE = PAGE_ROWS * ROW_BYTES / DISK_7200_RPM.bytes_per_second + PAGE_ROWS * LOOK_UP  # without the seek
ALONE = PAGE + DISK_7200_RPM.seek + DISK_7200_RPM.look_up  # of a tuple of INLJ


def _elsewhere(numbers: np.ndarray) -> np.ndarray:
    """Ask for another page than the tuple before."""
    return numbers * 7919 % ROWS


def _random(numbers: np.ndarray) -> np.ndarray:
    return np.random.default_rng(int(numbers[0])).integers(0, ROWS, len(numbers))


def test_inlj_joins_a_tuple_before_the_next_one_comes() -> None:
    """At an arrival rate below the service rate no tuple waits, and each takes a page."""
    times = tuple_times(IndexNestedLoopJoin(R, STREAM, "key", MEMORY), _elsewhere, 5, 50, 0.5 / ALONE)
    assert times.waiting == pytest.approx(np.zeros(50), abs=2 * TUPLE)
    assert times.processing == pytest.approx(np.full(50, ALONE), abs=2 * TUPLE)


def test_inlj_falls_behind_when_tuples_come_twice_as_fast_as_it_joins() -> None:
    """The n-th tuple is read when those before it are joined, and has come after half of that time."""
    times = tuple_times(IndexNestedLoopJoin(R, STREAM, "key", MEMORY), _elsewhere, 0, 50, 2 / ALONE)
    assert times.waiting == pytest.approx(np.arange(50) * ALONE / 2, abs=200 * TUPLE)


def test_a_tuple_of_meshjoin_takes_half_a_cycle_of_r() -> None:
    """The page with its row is one of k at random (HYBRIDJOIN 2011, section 3: half of the time for R)."""
    join = MeshJoin(R, STREAM, "key", MEMORY)
    w, k = join.waiting.slots // join.k, join.k
    times = Summary.of(tuple_times(join, _random, join.waiting.slots, 200 * w).processing)
    iteration = PAGE + w * TUPLE + DISK_7200_RPM.seek / k
    assert times.mean == pytest.approx((k + 1) / 2 * iteration, rel=0.02)
    assert times.p50 == pytest.approx(times.mean, rel=0.05)
    assert times.p99 == pytest.approx(k * iteration, rel=0.05)


def test_a_full_hybridjoin_obeys_littles_law() -> None:
    """The mean processing time is the number of waiting tuples over the rate at which they are joined."""
    join = HybridJoin(R, STREAM, "key", MEMORY, shares=Shares(stream_buffer=0.4))  # room for w tuples
    slots, start = join.waiting.slots, seconds(join)
    times = tuple_times(join, _random, 5 * slots, 20 * slots)
    joined = join.stream_buffer.arrived - len(join.stream_buffer) - join.pending
    assert times.processing.mean() == pytest.approx(slots * (seconds(join) - start) / joined, rel=0.05)


def test_hits_of_the_front_stage_take_no_time() -> None:
    """When all keys of the stream are in the front stage, the processing time is 0."""
    join = CHybridJoin(R, STREAM, "key", 10 * MEMORY, shares=Shares(front_stage=0.5))
    join.preload()
    times = tuple_times(join, lambda numbers: numbers % 1000, 0, 5000)
    assert not times.processing.any()
