"""The values of event n: Zipf's law, the permutation from rank to key, drift, absent keys."""

import math
from collections.abc import Callable
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator import StreamSettings
from generator.events import Events, make_events
from generator.settings import Law
from generator.values import MAX_QUANTITY, STORES, draw_ranks, keys_of_ranks, recipe

DRAWS = 1_000_000


def integral_law(edges: np.ndarray, exponent: float, keys: int) -> np.ndarray:
    """Return the probability of the ranks in [edge, next edge) by the paper's density on [1, keys + 1]."""
    edges = edges.astype(np.float64)
    area = np.log(edges) if exponent == 1 else edges ** (1 - exponent)
    end = math.log(keys + 1) if exponent == 1 else (keys + 1.0) ** (1 - exponent)
    return np.diff(area) / (end - (0.0 if exponent == 1 else 1.0))


def discrete_law(edges: np.ndarray, exponent: float, keys: int) -> np.ndarray:
    """Return the probability of the ranks in [edge, next edge) when rank k has k^-exponent."""
    weights = np.concatenate([[0.0], np.cumsum(np.arange(1, keys + 1, dtype=np.float64) ** -exponent)])
    shares: np.ndarray = np.diff(weights[edges - 1]) / weights[-1]
    return shares


LAWS: dict[Law, Callable[[np.ndarray, float, int], np.ndarray]] = {"integral": integral_law, "discrete": discrete_law}


def chi_square_deviation(ranks: np.ndarray, law: Law, exponent: float, keys: int) -> float:
    """Return how many standard deviations chi-square is above its mean; each bin expects 20 ranks or more."""
    edges = np.unique(np.geomspace(1, keys + 1, 200).round().astype(np.int64))
    below = np.concatenate([[0.0], np.cumsum(LAWS[law](edges, exponent, keys))]) * len(ranks)
    kept = [0]
    for i in range(1, len(edges) - 1):
        if below[i] - below[kept[-1]] >= 20 and below[-1] - below[i] >= 20:
            kept.append(i)
    kept.append(len(edges) - 1)
    expected = np.diff(below[kept])
    observed = np.histogram(ranks, bins=edges[kept])[0]
    assert observed.sum() == len(ranks)
    freedom = len(expected) - 1
    return float((((observed - expected) ** 2 / expected).sum() - freedom) / math.sqrt(2 * freedom))


@pytest.mark.parametrize("law", ["integral", "discrete"])
@pytest.mark.parametrize("exponent", [0, 0.5, 0.999999, 1, 1.5, 3])
@pytest.mark.parametrize("keys", [10, 10_000, 10_000_000])
def test_ranks_follow_the_exact_law(law: Law, exponent: float, keys: int) -> None:
    """Chi-square over 200 bins of ranks finds no deviation: uniform, at 1, near 1 and above."""
    ranks = draw_ranks(StreamSettings(keys=keys, exponent=exponent, law=law, seed=11), DRAWS)
    assert chi_square_deviation(ranks, law, exponent, keys) < 4


@pytest.mark.parametrize("law", ["integral", "discrete"])
def test_chi_square_notices_a_slightly_wrong_law(law: Law) -> None:
    """The chi-square test detects an exponent of 1.01 instead of 1, and the other of the two laws."""
    other: Law = "discrete" if law == "integral" else "integral"
    ranks = draw_ranks(StreamSettings(keys=10_000, exponent=1.01, law=law, seed=11), DRAWS)
    assert chi_square_deviation(ranks, law, 1.0, 10_000) > 10
    assert chi_square_deviation(ranks, other, 1.01, 10_000) > 10


def test_single_key_is_always_drawn() -> None:
    """With a single key, either law always draws that key."""
    for law in get_args(Law):
        assert set(draw_ranks(StreamSettings(keys=1, law=law), 1000)) == {1}


@settings(deadline=None, max_examples=60)
@given(
    keys=st.integers(1, 5_000) | st.sampled_from([2**16 - 1, 2**16, 2**16 + 1, 100_003]),
    seed=st.integers(0, 2**63 - 1),
    interval=st.integers(0, 10**12),
)
def test_permutation_is_a_bijection(keys: int, seed: int, interval: int) -> None:
    """Each key of 1..keys has exactly one rank, for any size, seed and drift interval."""
    products = keys_of_ranks(StreamSettings(keys=keys, seed=seed), np.arange(1, keys + 1), interval)
    np.testing.assert_array_equal(np.sort(products), np.arange(1, keys + 1))


def test_permutation_of_ten_million_keys_leaves_no_order() -> None:
    """It is a bijection at the size of a large catalogue, and ranks do not correlate with keys."""
    keys = 10_000_000
    ranks = np.arange(1, keys + 1)
    products = keys_of_ranks(StreamSettings(keys=keys, seed=3), ranks)
    assert (np.bincount(products, minlength=keys + 1)[1:] == 1).all()
    assert abs(np.corrcoef(ranks, products)[0, 1]) < 0.005
    assert abs(np.corrcoef(ranks[:1000], products[:1000])[0, 1]) < 0.15
    assert np.abs(np.diff(products)).mean() == pytest.approx(keys / 3, rel=0.02)


def events_of(stream: StreamSettings, count: int, first: int = 0) -> Events:
    """Return events first..first + count - 1."""
    return make_events(recipe(stream), np.arange(first, first + count), np.zeros(count, np.int64), tag=0)


def test_event_is_a_function_of_seed_and_number() -> None:
    """The start of a batch changes nothing; another seed changes nearly all products."""
    stream = StreamSettings(keys=1_000_000, seed=5)
    whole, later = events_of(stream, 1000), events_of(stream, 400, first=600)
    np.testing.assert_array_equal(whole.products[600:], later.products)
    np.testing.assert_array_equal(whole.quantities[600:], later.quantities)
    np.testing.assert_array_equal(whole.stores[600:], later.stores)
    other = events_of(StreamSettings(keys=1_000_000, seed=6), 1000)
    assert (other.products == whole.products).mean() < 0.02


def test_quantity_and_store_cover_their_ranges_evenly() -> None:
    """Quantities are 1..10 and stores 1..100, all with the same frequency."""
    events = events_of(StreamSettings(keys=10), 200_000)
    for column, size in ((events.quantities, MAX_QUANTITY), (events.stores, STORES)):
        counts = np.bincount(column, minlength=size + 1)
        assert counts[0] == 0
        assert len(counts) == size + 1
        assert counts[1:] == pytest.approx(200_000 / size, rel=0.12)


def test_drift_in_steps_changes_the_permutation_at_each_interval() -> None:
    """Within an interval it stays the same; the next interval has another."""
    stream = StreamSettings(keys=500, seed=2, drift="steps", drift_every=10_000)
    ranks = draw_ranks(stream, 30_000)
    products = events_of(stream, 30_000).products
    for interval in range(3):
        rows = slice(interval * 10_000, (interval + 1) * 10_000)
        np.testing.assert_array_equal(products[rows], keys_of_ranks(stream, ranks[rows], interval))
    tops = {int(keys_of_ranks(stream, np.array([1]), interval)[0]) for interval in range(3)}
    assert len(tops) == 3


def test_gradual_drift_crosses_over_within_the_interval() -> None:
    """The share of the next interval's permutation grows from 0 to 1."""
    stream = StreamSettings(keys=100_000, seed=2, drift="gradual", drift_every=100_000)
    ranks = draw_ranks(stream, 100_000)
    products = events_of(stream, 100_000).products
    is_next = products == keys_of_ranks(stream, ranks, 1)
    assert (is_next | (products == keys_of_ranks(stream, ranks, 0))).all()
    for tenth in range(10):
        share = is_next[tenth * 10_000 : (tenth + 1) * 10_000].mean()
        assert share == pytest.approx((tenth + 0.5) / 10, abs=0.02)


def test_windows_visit_the_key_space_part_by_part() -> None:
    """In the locality experiment, interval i draws by Zipf's law within the i-th of 25 parts of the keys."""
    stream = StreamSettings(keys=100_010, exponent=1, seed=2, drift="windows", drift_every=4_000, windows=25)
    products = events_of(stream, 100_000).products.reshape(25, 4_000)
    for window, part in enumerate(products):
        low, high = window * 100_010 // 25, (window + 1) * 100_010 // 25
        assert low < part.min()
        assert part.max() <= high
        top_share = np.bincount(part).max() / len(part)
        assert top_share == pytest.approx(math.log(2) / math.log(high - low + 1), rel=0.25)


def test_the_requested_share_of_keys_is_absent() -> None:
    """Absent products have ids above those of the master data."""
    events = events_of(StreamSettings(keys=1000, absent=0.05, seed=4), 200_000)
    absent = events.products[events.products > 1000]
    assert len(absent) / 200_000 == pytest.approx(0.05, rel=0.05)
    assert absent.max() <= 2000
    assert events_of(StreamSettings(keys=1000, seed=4), 200_000).products.max() <= 1000
