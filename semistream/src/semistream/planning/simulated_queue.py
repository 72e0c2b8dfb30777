"""The queue of HYBRIDJOIN, tuple by tuple: for partitions that start at the page of the looked-up key.

Aligned partitions do not overlap: each collects tuples for a whole round of the queue, and `waiting.py` needs no
simulation. Partitions that start at the looked-up key overlap. A read clears the key's page and those behind it. Later
the first tuple that has come for one of these pages, in their middle, is the oldest. Its read clears the pages behind
it, and does not reach those before it. For them another read follows soon, which covers the same pages again in vain.
How many reads follow depends on the order in which the first tuples of all neighbours came. We know no formula for it.
"""

import numpy as np
from semistream.kernels import kernel
from semistream.planning.waiting import Round
from semistream.planning.workload import Workload

__all__ = ["simulate"]

_FILLINGS = 40  # times h_S tuples arrive; the second half is counted
_LEAST_ARRIVALS = 5_000_000  # of as many queues as it takes: a short one depends on chance
_FEWEST = 0.01  # of the stream is for other rows than kept ones
_SEED = 1
_KEPT = -1  # the page of a kept row


def simulate(
    workload: Workload,
    page_rows: int,
    partition_pages: int,
    waiting: int,
    *,
    cached: int = 0,
    kept: bool = False,
    refill: int = 1,
    from_key: bool = True,
) -> tuple[Round, float]:
    """Read the partition of the oldest tuple, again and again. Return the mean round, and the mean pages of a read.

    Args:
        workload: what is joined.
        page_rows: the rows of a page.
        partition_pages: the pages of a partition.
        waiting: tuples that can wait: h_S.
        cached: the most frequent rows that are in memory: no tuple waits for them.
        kept: whether tuples for these rows wait until the next read, as in X-HYBRIDJOIN.
        refill: how much room there is when the join reads on in the stream.
        from_key: whether a partition starts at the page of the tuple, and not at a multiple of its pages.
    """
    rng = np.random.default_rng(_SEED)
    heads = workload.skew.head(np.arange(workload.rows + 1, dtype=np.float64))
    cached = min(cached, workload.rows - 1)
    least = 0.0 if kept else heads[cached]
    arrivals = int(_FILLINGS * waiting * (1 - least) / max(1 - heads[cached], _FEWEST))
    pages = -(-workload.rows // page_rows)
    counts = np.zeros(5, dtype=np.int64)
    for _ in range(-(-_LEAST_ARRIVALS // arrivals)):
        drawn = rng.uniform(least, 1.0, arrivals)
        ranks = np.minimum(np.searchsorted(heads, drawn, side="right") - 1, workload.rows - 1)
        rows = ranks if workload.order == "frequency" else rng.permutation(workload.rows)[ranks]
        arriving = np.where(ranks < cached, _KEPT, rows // page_rows)
        state = np.full(pages, -1, dtype=np.int64), np.zeros(pages, dtype=np.int64)
        _run(arriving, waiting, refill, partition_pages, from_key, *state, counts)
    reads, served, covered, ages, arrived = counts.tolist()
    rounds = arrived / (ages / reads)  # one while as many tuples come as have come since the oldest one
    return Round(reads / rounds, served / rounds), covered / reads


@kernel
def _arrive(arriving: np.ndarray, waits: np.ndarray) -> int:
    """Add tuples to those that wait for their pages, and return how many are for kept rows."""
    kept = 0
    for page in arriving:
        if page == _KEPT:
            kept += 1
        else:
            waits[page] += 1
    return kept


@kernel
def _run(
    arriving: np.ndarray,
    waiting: int,
    refill: int,
    partition_pages: int,
    from_key: bool,  # noqa: FBT001 - a kernel takes arguments by place
    last: np.ndarray,
    waits: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Count in the second half: reads, their tuples and pages, the tuples since the oldest at each, and all tuples."""
    head, tail, held, kept = 0, 0, 0, 0
    while True:
        if waiting - held >= refill:
            stop = tail + waiting - held
            if stop > len(arriving):
                return
            kept += _arrive(arriving[tail:stop], waits)
            if 2 * head > len(arriving):
                counts[4] += stop - tail
            tail, held = stop, waiting
        held, kept = held - kept, 0
        while head < tail and (arriving[head] == _KEPT or last[arriving[head]] > head):
            head += 1
        if head == tail:
            continue
        page = arriving[head]
        first = page if from_key else page - page % partition_pages
        end = min(first + partition_pages, len(waits))
        served = 0
        for i in range(first, end):
            served += waits[i]
            waits[i] = 0
            last[i] = tail
        held -= served
        if 2 * head > len(arriving):
            counts[0] += 1
            counts[1] += served
            counts[2] += end - first
            counts[3] += tail - head
