"""The model of the queue gives the tuples that a page serves, as a plain simulation of HYBRIDJOIN counts them."""

from __future__ import annotations

import numpy as np
import pytest
from semistream.planning import Skew, Workload
from semistream.planning.waiting import page_shares, round_of_the_queue

ROWS = 100_000


def simulated(workload: Workload, page_rows: int, waiting: int, cached: int, seed: int = 1) -> float:
    """Read the page of the oldest tuple, again and again; return the tuples that a read serves, after a warm-up."""
    rng = np.random.default_rng(seed)
    ranks = np.searchsorted(Skew(ROWS, workload.exponent).head(np.arange(ROWS + 1)), rng.random(40 * waiting)) - 1
    ranks = ranks[ranks >= cached]
    places = np.arange(ROWS) if workload.order == "frequency" else rng.permutation(ROWS)
    pages = (places[ranks] // page_rows).tolist()
    last, waits = [-1] * (ROWS // page_rows + 1), [0] * (ROWS // page_rows + 1)
    head = tail = held = reads = served = 0
    while True:
        while held < waiting:
            if tail == len(pages):
                return served / reads
            waits[pages[tail]] += 1
            tail, held = tail + 1, held + 1
        while last[pages[head]] >= head:
            head += 1
        page = pages[head]
        if head > len(pages) // 2:
            reads, served = reads + 1, served + waits[page]
        held, waits[page], last[page] = held - waits[page], 0, tail - 1


@pytest.mark.parametrize("order", ["frequency", "none"])
@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.2])
@pytest.mark.parametrize(("page_rows", "waiting", "cached"), [(100, 2000, 0), (1000, 10_000, 0), (200, 5000, 1000)])
def test_it_serves_as_many_as_a_simulation(
    order: str, exponent: float, page_rows: int, waiting: int, cached: int
) -> None:
    """For each order, skew and size the model is within 5% of the simulation; k = 1.36 of the paper is not needed."""
    workload = Workload.of_the_papers(ROWS, exponent, order)  # type: ignore[arg-type]
    found = round_of_the_queue(*page_shares(workload, page_rows, cached), waiting).served
    assert found == pytest.approx(simulated(workload, page_rows, waiting, cached), rel=0.05)


def test_without_skew_a_page_serves_twice_its_part_of_the_queue() -> None:
    """With many tuples for each page and no skew, a page serves 2 h_S / pages: all that came since its last read."""
    workload = Workload.of_the_papers(ROWS, 0.0)
    found = round_of_the_queue(*page_shares(workload, 1000, 0), 100_000).served
    assert found == pytest.approx(2 * 100_000 / 100, rel=0.01)


def test_few_equal_pages_are_read_in_turn() -> None:
    """If the room is filled after each of N pages, h_S has what came in 1, 2, .. N reads: w is 2 h_S / (N + 1)."""
    pages, slots = 13, 6000
    found = round_of_the_queue(np.full(pages, 1 / pages), np.ones(pages), slots, lambda served: served / 2)
    assert found.served == pytest.approx(2 * slots / (pages + 1), rel=0.01)


def test_shares_of_many_pages_are_put_together_without_loss() -> None:
    """A million pages become some thousand groups: they have all pages, the whole stream, and the same result."""
    workload = Workload.of_the_papers(1_000_000, 1.0)
    shares, counts = page_shares(workload, 1, 0)
    assert counts.sum() == 1_000_000
    assert (shares * counts).sum() == pytest.approx(1)
    assert len(shares) <= 20_000
