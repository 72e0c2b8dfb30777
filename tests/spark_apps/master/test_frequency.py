"""The estimate stays within its bounds of the exact counts, and is stored for the keys of the master table."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_apps.master.frequency import Estimate, decay, merge, read_estimate, store_estimate

if TYPE_CHECKING:
    from tests.spark_apps.conftest import Warehouse

HALF_LIFE = 1000.0
NOTHING = Estimate(0, 0.0, pa.table({"k": pa.array([], pa.int64()), "weight": pa.array([], pa.float64())}))
INTERVALS = st.lists(
    st.tuples(st.integers(1, 3000), st.dictionaries(st.integers(1, 12), st.integers(1, 40))), min_size=1, max_size=6
)


def interval(until: int, counts: dict[int, int], keep: int) -> Estimate:
    """Return the counts of an interval: the heaviest keys, and the number of all events."""
    heaviest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:keep]
    weights = {"k": [k for k, _ in heaviest], "weight": [float(n) for _, n in heaviest]}
    schema = pa.schema([("k", pa.int32()), pa.field("weight", pa.float64(), nullable=False)])  # as Spark gives it
    return Estimate(until, float(sum(counts.values())), pa.table(weights, schema))


@settings(deadline=None)
@given(INTERVALS, st.integers(1, 12))
def test_no_estimate_is_too_high_and_none_too_low_by_more_than_is_promised(
    intervals: list[tuple[int, dict[int, int]]], keep: int
) -> None:
    """Each estimate is within the documented error of the exact decayed count; with at most K keys it is exact."""
    exact: Counter[int] = Counter()
    total, allowed, now, estimate = 0.0, 0.0, 0, NOTHING
    for length, counts in intervals:
        now += length
        left = 0.5 ** (length / HALF_LIFE)
        exact = Counter({key: weight * left for key, weight in exact.items()})
        exact.update(counts)
        events = sum(counts.values())
        total = total * left + events
        allowed = allowed * left + (events + total) / (keep + 1)
        estimate = merge(estimate, interval(now, counts, keep), HALF_LIFE, keep)
    estimated = dict(zip(*(estimate.weights[name].to_pylist() for name in ("k", "weight")), strict=True))
    assert len(estimated) <= keep
    assert estimate.total == pytest.approx(total)
    for key, weight in exact.items():
        assert estimated.get(key, 0.0) <= weight + 1e-9
        assert weight - estimated.get(key, 0.0) <= allowed + 1e-9
    if len(exact) <= keep:
        assert estimated == pytest.approx(dict(exact))


def test_an_event_counts_half_after_the_half_life_and_never_more_than_once() -> None:
    """An event's weight halves after the half-life and never exceeds one, even if the clock steps back."""
    assert decay(HALF_LIFE, HALF_LIFE) == 0.5
    assert decay(0, HALF_LIFE) == decay(-5, HALF_LIFE) == 1.0


@pytest.mark.integration
def test_an_estimate_that_decays_to_nothing_is_empty(products: Warehouse) -> None:
    """An estimate that has decayed to nothing, after weeks without events, is stored and read as empty."""
    table = pa.table({"product_id": pa.array([5], pa.int64()), "weight": [1.0]})
    nothing = Estimate(int(2000 * HALF_LIFE), 0.0, table.slice(0, 0))
    faded = merge(Estimate(0, 1.0, table), nothing, HALF_LIFE, 10)
    assert (faded.total, faded.weights.num_rows) == (0.0, 0)
    assert store_estimate(products.login, products.master, faded) == 0
    assert read_estimate(products.login, products.master).weights.num_rows == 0


@pytest.mark.integration
def test_an_estimate_is_read_as_it_was_stored_and_replaces_the_one_before(products: Warehouse) -> None:
    """Keys without a master row are left out, but their weight stays in the total."""
    for keys, weights, stored in (([5, 9, 10**15, -3], [6.0, 2.0, 1.0, 1.0], {5: 6.0, 9: 2.0}), ([7], [2.5], {7: 2.5})):
        table = pa.table({"product_id": pa.array(keys, pa.int64()), "weight": weights})
        assert store_estimate(products.login, products.master, Estimate(77, 20.0, table)) == len(stored)
        read = read_estimate(products.login, products.master)
        assert (read.until_ms, read.total) == (77, 20.0)
        assert dict(zip(*(column.to_pylist() for column in read.weights.columns), strict=True)) == stored
    assert products.ask("SELECT product_id, access_frequency FROM product_frequency") == [(7, 0.125)]
