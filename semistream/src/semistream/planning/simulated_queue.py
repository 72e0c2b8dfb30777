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

_ROUNDS = 40  # queues full of tuples that arrive; the second half is counted
_LEAST_ARRIVALS = 200_000
_SEED = 1


def simulate(
    workload: Workload,
    page_rows: int,
    partition_pages: int,
    waiting: int,
    *,
    cached: int = 0,
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
        refill: how much room there is when the join reads on in the stream.
        from_key: whether a partition starts at the page of the tuple, and not at a multiple of its pages.
    """
    rng = np.random.default_rng(_SEED)
    heads = workload.skew.head(np.arange(workload.rows + 1, dtype=np.float64))
    drawn = rng.uniform(heads[cached], 1.0, max(_LEAST_ARRIVALS, _ROUNDS * waiting))
    rows = np.minimum(np.searchsorted(heads, drawn, side="right") - 1, workload.rows - 1)
    if workload.order == "none":
        rows = rng.permutation(workload.rows)[rows]
    pages = -(-workload.rows // page_rows)
    counts = np.zeros(4, dtype=np.int64)
    state = np.full(pages, -1, dtype=np.int64), np.zeros(pages, dtype=np.int64)
    _run(rows // page_rows, waiting, refill, partition_pages, from_key, *state, counts)
    reads, served, covered, ages = counts.tolist()
    length = ages / reads  # tuples that come while the queue is gone through once
    return Round(length * reads / served, length), covered / reads


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
    """Count reads, the tuples and pages of them, and how many tuples came since the oldest one, in the second half."""
    head, tail, held = 0, 0, 0
    while True:
        if waiting - held >= refill:
            stop = tail + waiting - held
            if stop > len(arriving):
                return
            for i in range(tail, stop):
                waits[arriving[i]] += 1
            tail, held = stop, waiting
        while last[arriving[head]] > head:
            head += 1
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
