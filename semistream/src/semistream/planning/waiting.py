"""How many waiting tuples a page of R serves when the page of the oldest tuple is read: w of the HYBRIDJOIN family.

HYBRIDJOIN 2011 measures w = k h_S d / R_t with k = 1.36 (equation 2). Here w follows from the rates at which tuples
arrive for each page. Time counts arrivals of tuples that wait.

A page is read when its first waiting tuple has become the oldest. So while the queue is gone through once, in which C
tuples arrive, a page with the share l of the arrivals is read once, or not at all if nothing waited for it. Let q be
the probability that something waits for it when the round begins. If it is read, a random part of the round comes
behind the read; if not, all of the round's tuples for it wait. So q solves

    q = q (1 - (1 - exp(-l C')) / (l C')) + (1 - q) (1 - exp(-l C))

C' are the arrivals that come in the course of the round: all but those that fill the room of the busiest page at once,
which is read when the round ends. The round's length follows from h_S, the tuples that wait at its end. Without skew,
and with many tuples for a page, w becomes 2 h_S / pages.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from semistream.planning.workload import Workload

__all__ = ["Round", "page_shares", "round_of_the_queue"]

_SINGLE_RANKS = 200_000  # the most frequent rows are placed one by one, in a random order of R
_MOST_PAGES = 20_000  # more pages are put together by their shares
_STEPS = 200
_SEED = 1


@dataclass(frozen=True)
class Round:
    """One pass through the queue.

    Attributes:
        reads: pages that are read.
        tuples: waiting tuples that they serve.
    """

    reads: float
    tuples: float

    @property
    def served(self) -> float:
        """Waiting tuples that a page serves: w."""
        return self.tuples / self.reads


def page_shares(workload: Workload, page_rows: int, cached: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the share of the waiting tuples that asks for each page, and how many pages have that share.

    Args:
        workload: what is joined.
        page_rows: the rows of a page.
        cached: the most frequent rows that are in memory: no tuple waits for them.
    """
    skew, pages = workload.skew, -(-workload.rows // page_rows)
    cached = min(cached, workload.rows - 1)
    edges = np.minimum(np.arange(pages + 1, dtype=np.float64) * page_rows, workload.rows)
    if workload.order == "frequency":
        shares = np.diff(skew.head(np.maximum(edges, cached)))
    else:
        single = min(_SINGLE_RANKS, workload.rows - cached)
        places = np.random.default_rng(_SEED).integers(0, workload.rows, single) // page_rows
        shares = np.bincount(places, weights=skew.shares(cached, single), minlength=pages)
        rest = 1 - float(skew.head(np.array([cached + single]))[0])
        shares = shares + rest * np.diff(edges) / workload.rows
    return _together(shares / shares.sum())


def round_of_the_queue(
    shares: np.ndarray, counts: np.ndarray, slots: float, unused: Callable[[float], float] = lambda _: 0.0
) -> Round:
    """Return the pass through a queue of this many tuples.

    Args:
        shares: the share of the arrivals for each page.
        counts: how many pages have it.
        slots: tuples that can wait: h_S.
        unused: how many of the slots hold no tuple of the queue, on average, for the tuples that a page serves.
    """
    busiest = float(shares.max())
    least, most = 1.0, 1e15
    found = Round(1.0, 1.0)
    for _ in range(_STEPS):
        middle = (least * most) ** 0.5
        found, held = _pass(shares, counts, busiest, middle)
        rare = max(middle * (1 - busiest) / max(found.reads - 1, 1), 1)  # the tuples that a page but the busiest serves
        least, most = (middle, most) if held + unused(rare) < slots else (least, middle)
        if most / least < 1 + 1e-9:
            break
    return found


def _pass(shares: np.ndarray, counts: np.ndarray, busiest: float, arrivals: float) -> tuple[Round, float]:
    """Return the round in which this many tuples arrive, and how many wait at its end."""
    expected = shares * arrivals
    later = np.maximum(expected * (1 - busiest), 1e-12)
    stays = 1 + np.expm1(-later) / later  # something comes behind the read
    comes = -np.expm1(-expected)
    occupied = comes / (1 - stays + comes)
    others = counts - (np.arange(len(shares)) == np.argmax(shares))  # but one of the busiest
    waits = busiest * arrivals + float((others * (occupied * later / 2 + (1 - occupied) * expected)).sum())
    return Round(1 + float((others * occupied).sum()), arrivals), waits


def _together(shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Put pages with nearly the same share together if there are too many."""
    shares = np.sort(shares[shares > 0])[::-1]
    if len(shares) <= _MOST_PAGES:
        return shares, np.ones(len(shares))
    head, rest = shares[: _MOST_PAGES // 2], shares[_MOST_PAGES // 2 :]
    groups = np.array_split(rest, _MOST_PAGES // 2)
    means = np.array([group.mean() for group in groups])
    return np.concatenate([head, means]), np.concatenate([np.ones(len(head)), [len(group) for group in groups]])
