"""The simulated queue serves as many tuples as HYBRIDJOIN itself, with partitions that start at the looked-up key."""

from __future__ import annotations

import pytest
from semistream.joins import HybridJoin
from semistream.planning import Workload
from semistream.planning.simulated_queue import simulate
from semistream.planning.waiting import page_shares, round_of_the_queue

from benchmarks.benchmark_papers import STREAM, Setting, relation, stream

ROWS = 60_000
FILLINGS = 20  # as many tuples wait before the count; as many are counted


def joined(workload: Workload, page_rows: int, partition_pages: int, memory: int) -> tuple[float, float, int]:
    """Return the tuples and the pages of a read of HYBRIDJOIN, and h_S."""
    r = relation(Setting(rows=ROWS), page_rows, by_frequency=workload.order == "frequency")
    join = HybridJoin(r, STREAM, "key", memory, partition_pages=partition_pages, from_key=True)
    counts = []
    for seed in (1, 2):
        for batch in stream(Setting(rows=ROWS), workload.exponent, FILLINGS * join.waiting.slots, seed):
            join.feed(batch)
        counts.append((join.stream_buffer.arrived - join.pending, r.counters.pages_read, r.counters.look_ups))
    tuples, pages, reads = (after - before for before, after in zip(*counts, strict=True))
    return tuples / reads, pages / reads, join.waiting.slots


@pytest.mark.parametrize("order", ["frequency", "none"])
@pytest.mark.parametrize("exponent", [0.0, 1.0])
def test_it_serves_as_many_as_hybridjoin(exponent: float, order: str) -> None:
    """Tuples and pages of a read are those of the join, with and without skew and order."""
    workload = Workload.of_the_papers(ROWS, exponent, order)  # type: ignore[arg-type]
    tuples, pages, waiting = joined(workload, 50, 4, 400_000)
    its, its_pages = simulate(workload, 50, 4, waiting, refill=waiting // 16)
    assert its.served == pytest.approx(tuples, rel=0.05)
    assert its_pages == pytest.approx(pages, rel=0.02)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_aligned_partitions_need_no_simulation(exponent: float) -> None:
    """With aligned partitions it gives what the model of the round gives."""
    workload = Workload.of_the_papers(ROWS, exponent)
    its, _ = simulate(workload, 20, 10, 3000, from_key=False)
    assert its.served == pytest.approx(round_of_the_queue(*page_shares(workload, 200, 0), 3000).served, rel=0.05)


def test_partitions_that_start_at_the_key_serve_less_than_half() -> None:
    """They overlap: without skew k is below 1 where aligned partitions have k = 2; with one page both are the same."""
    workload = Workload.of_the_papers(ROWS, 0.0)
    (key, _), (aligned, _) = (simulate(workload, 1, 125, 9000, from_key=from_key) for from_key in (True, False))
    part = 9000 * 125 / ROWS
    assert key.served < part
    assert aligned.served == pytest.approx(2 * part, rel=0.05)
    assert simulate(workload, 100, 1, 3000, from_key=True) == simulate(workload, 100, 1, 3000, from_key=False)


def test_the_round_ends_when_the_oldest_tuple_of_its_begin_has_left() -> None:
    """A tuple waits for a round at most. Without skew all pages are read in one, and 2 h_S tuples come."""
    its, pages = simulate(Workload.of_the_papers(ROWS, 0.0), 100, 1, 10_000, from_key=False)
    assert its.reads == pytest.approx(ROWS / 100, rel=0.05)
    assert its.tuples == pytest.approx(2 * 10_000, rel=0.05)
    assert pages == 1


def test_tuples_for_kept_rows_take_slots_until_the_next_read() -> None:
    """As in X-HYBRIDJOIN: with the same h_S a read serves fewer others than where kept rows are probed first."""
    workload = Workload.of_the_papers(ROWS, 1.0)
    probed, kept = (
        simulate(workload, 500, 1, 5000, cached=2000, kept=kept, from_key=False)[0].served for kept in (False, True)
    )
    in_memory = float(workload.skew.head([2000])[0])  # type: ignore[arg-type]
    assert kept == pytest.approx(probed * (1 - kept * in_memory / (1 - in_memory) / 5000), rel=0.05)
