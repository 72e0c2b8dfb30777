"""The times of events: the on/off sources against a naive version, the mean rate, silences, self-similarity."""

import heapq
import math
from collections.abc import Callable

import numpy as np
import pytest

from generator import StreamSettings
from generator.arrivals import STEP_SECONDS, Bursts, arrival_times, chunk_seconds, counts_per_step
from generator.hurst import by_aggregated_variance, by_rescaled_range

Estimate = Callable[[np.ndarray, int, int], float]


def naive_levels(sources: int, burstiness: float, steps: int, seed: int) -> np.ndarray:
    """Figure 9 with a real priority queue; the total bandwidth is integrated toggle by toggle."""
    rng = np.random.default_rng(seed)
    duty = 1 / burstiness
    stretch = {True: 2 * duty, False: 2 * (1 - duty)}
    is_on = (rng.random(sources) < duty).tolist()
    queue: list[tuple[float, int]] = []
    for i in range(sources):
        heapq.heappush(queue, (math.sqrt(rng.random()) * rng.random() * 2 ** (i + 1) * stretch[is_on[i]], i))
    levels = np.zeros(steps)
    now, mean = 0.0, duty * sum(2 ** (i + 1) for i in range(sources))
    while now < steps:
        toggle, source = heapq.heappop(queue)
        total = sum(2 ** (i + 1) for i in range(sources) if is_on[i]) / mean
        end = min(toggle, steps)
        while now < end:
            until = min(math.floor(now) + 1, end)
            levels[math.floor(now)] += total * (until - now)
            now = until
        if toggle < steps:
            is_on[source] = not is_on[source]
            heapq.heappush(queue, (toggle + rng.random() * 2 ** (source + 1) * stretch[is_on[source]], source))
    return levels


@pytest.mark.parametrize("burstiness", [1.25, 2, 10])
def test_levels_are_those_of_a_priority_queue(burstiness: float) -> None:
    """The kernel toggles the same sources at the same times as a heap, also across chunks."""
    bursts = Bursts(6, burstiness, np.random.default_rng(9))
    levels = np.concatenate([bursts.levels(300), bursts.levels(1), bursts.levels(699)])
    np.testing.assert_allclose(levels, naive_levels(6, burstiness, 1000, 9), atol=1e-9)


@pytest.mark.parametrize("burstiness", [1, 2, 8])
def test_level_has_mean_one_and_peak_burstiness(burstiness: float) -> None:
    """Burstiness is peak rate over mean rate; it does not change the mean."""
    levels = Bursts(8, burstiness, np.random.default_rng(1)).levels(400_000)
    assert levels.mean() == pytest.approx(1, abs=0.05)
    assert levels.max() == pytest.approx(burstiness, rel=0.1)
    assert levels.max() <= burstiness + 1e-9
    assert levels.min() >= -1e-9


def counts(steps: int, **options: float) -> np.ndarray:
    """Return the number of events in each of the first steps."""
    stream = StreamSettings(keys=1, **options)  # type: ignore[arg-type]
    chunks, have = [], 0
    for chunk in counts_per_step(stream):
        chunks.append(chunk)
        have += len(chunk)
        if have >= steps:
            break
    return np.concatenate(chunks)[:steps].astype(np.float64)


@pytest.mark.parametrize("estimate", [by_aggregated_variance, by_rescaled_range])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_stream_is_self_similar_where_poisson_is_not(estimate: Estimate, seed: int) -> None:
    """Hurst's parameter is high for a bursty stream and 1/2 at constant rate, in an hour at 2000 events a second."""
    scales = (10, 1000)
    bursty = estimate(counts(360_000, rate=2000, sources=12, seed=seed), *scales)
    poisson = estimate(counts(360_000, rate=2000, burstiness=1, seed=seed), *scales)
    assert bursty > 0.8
    assert poisson == pytest.approx(0.5, abs=0.07)


@pytest.mark.parametrize("estimate", [by_aggregated_variance, by_rescaled_range])
@pytest.mark.parametrize("hurst", [0.5, 0.7, 0.9])
def test_estimators_find_a_known_parameter(estimate: Estimate, hurst: float) -> None:
    """The estimators recover Hurst's parameter of exact fractional Gaussian noise (Davies and Harte)."""
    size = 2**17
    k = np.arange(size + 1.0)
    covariance = (np.abs(k + 1) ** (2 * hurst) - 2 * k ** (2 * hurst) + np.abs(k - 1) ** (2 * hurst)) / 2
    eigenvalues = np.fft.rfft(np.concatenate([covariance, covariance[-2:0:-1]])).real
    rng = np.random.default_rng(4)
    spectrum = (rng.normal(size=size + 1) + 1j * rng.normal(size=size + 1)) * np.sqrt(np.maximum(eigenvalues, 0))
    noise = np.fft.irfft(spectrum)[:size]
    assert estimate(noise, 16, 1024) == pytest.approx(hurst, abs=0.07)


def test_counts_of_a_constant_rate_are_poisson() -> None:
    """At burstiness 1 the counts have equal mean and variance."""
    x = counts(200_000, rate=1000, burstiness=1, seed=1)
    assert x.mean() == pytest.approx(1000 * STEP_SECONDS, rel=0.01)
    assert x.var() / x.mean() == pytest.approx(1, abs=0.02)


def test_silent_stretches_have_no_event() -> None:
    """A stream that alternates three seconds on and two off has no event in the silences."""
    x = counts(50_000, rate=1000, burstiness=1, active=3, silent=2, seed=1).reshape(-1, 500)
    assert x[:, 300:].sum() == 0
    assert x[:, :300].mean() == pytest.approx(10, rel=0.01)


def test_times_ascend_within_the_chunk_they_belong_to() -> None:
    """Times ascend, are spread over their step, and have the step's count."""
    stream = StreamSettings(keys=1, rate=20_000, seed=8)
    micros = round(chunk_seconds(stream) * 1e6)
    steps = round(chunk_seconds(stream) / STEP_SECONDS)
    for index, (times, expected) in enumerate(zip(arrival_times(stream), counts_per_step(stream, steps), strict=False)):
        assert len(times) == expected.sum()
        assert (np.diff(times) >= 0).all()
        np.testing.assert_array_equal(np.bincount(times // 10_000 - index * steps, minlength=steps), expected)
        assert times.max(initial=0) < (index + 1) * micros
        if index == 5:
            break
