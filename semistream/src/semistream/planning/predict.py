"""What a join will do: the cost models of the five papers, one function for each family, over one division of memory.

Every model has the same form: an iteration reads a page, looks its rows up in H_S, and handles the w stream tuples that
it makes room for. MESHJOIN 2007, equation 2; HYBRIDJOIN 2011, equation 3; Optimised X-HYBRIDJOIN 2012, equation 2;
X-HYBRIDJOIN 2013, equations 2 and 5:

    c_loop = c_I/O + d c_H + w (c_S + c_A + c_E + c_O),    mu = w / c_loop

The models differ in w, in what is read, and in the share of the stream that meets its row in memory and never waits.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

import numpy as np
from semistream.disk_buffer import DiskBuffer
from semistream.joins import BY_NAME, HybridJoin
from semistream.memory_split import MemorySplit, Shares
from semistream.planning.machine import PAPERS, Machine
from semistream.planning.simulated_queue import simulate
from semistream.planning.waiting import page_shares, round_of_the_queue
from semistream.planning.workload import SizedRelation, Workload, added_columns

__all__ = ["JOINS", "Plan", "Prediction", "predict"]

_MOST_IN_MEMORY = 1 - 1e-9  # if all of R is cached, an iteration hardly ever comes, and no tuple waits
_READ_ON = 1 / 16  # of H_S is free when a join reads on in the stream
# The part of the cached rows that is among the most frequent ones; the others are on their way in or out. CINLJ joins
# one tuple at a time, and knows less about its rows.
CACHE_SKILL, CINLJ_SKILL = 0.95, 0.55


@dataclass(frozen=True)
class Plan:
    """A join, and how it would use its memory.

    Attributes:
        join: its name in `joins.BY_NAME`.
        memory: bytes.
        page_rows: the rows of a page of R.
        shares: how the memory is divided.
        partition_pages: the pages that an iteration reads.
        from_key: whether a partition starts at the page of the looked-up key (`HybridJoin`).
        single_rows_below: the rows of partitions that serve fewer tuples are read one by one (`HybridJoin`).
    """

    join: str
    memory: int
    page_rows: int
    shares: Shares = field(default_factory=Shares)
    partition_pages: int = 1
    from_key: bool = False
    single_rows_below: float = 0.0

    def options(self) -> dict[str, Any]:
        """Return what the plan decides of the arguments of its join's constructor."""
        options = {"memory": self.memory, "shares": self.shares, "partition_pages": self.partition_pages}
        if issubclass(BY_NAME[self.join], HybridJoin):
            options |= {"from_key": self.from_key, "single_rows_below": self.single_rows_below}
        return options


@dataclass(frozen=True)
class Prediction:
    """What a plan does with a workload on a machine, in its steady state and under full load.

    Attributes:
        plan: the plan.
        split: the sizes of its parts.
        rate: stream tuples a second: mu.
        iteration_seconds: c_loop.
        tuples: stream tuples for an iteration: w, with those that never wait.
        in_memory: the share of the stream that meets its row in memory.
        pages_per_1000: pages that are read for 1,000 stream tuples.
        rows_per_1000: single rows that are read for 1,000 stream tuples.
        bytes_per_tuple: bytes that are read for a stream tuple.
        processing_seconds: mean processing time of a stream tuple, from loading to matching (HYBRIDJOIN 2011, section
            3): the tuples that have not met their row yet, over the rate (Little's law).
        longest_seconds: the longest processing time.
    """

    plan: Plan
    split: MemorySplit
    rate: float
    iteration_seconds: float
    tuples: float
    in_memory: float
    pages_per_1000: float
    rows_per_1000: float
    bytes_per_tuple: float
    processing_seconds: float
    longest_seconds: float


@dataclass(frozen=True)
class _Iteration:
    """What one iteration does, before its cost is known."""

    pages: float  # read from disk
    seeks: float
    probed: float  # rows looked up in H_S
    index: float  # keys looked up in the index of R
    waited: float  # tuples that it joins and that had waited
    in_memory: float  # share of the stream that never waits
    held: float  # tuples that wait and have not met their row yet
    round_iterations: float  # until the oldest tuple of now has left
    single_rows: float = 0.0  # read one by one


@dataclass(frozen=True)
class _Sizes:
    """A workload as one plan cuts it."""

    workload: Workload
    plan: Plan
    pages: int
    split: MemorySplit
    single_rows: int  # that fit into the disk buffer

    @property
    def partitions(self) -> int:
        """Count the partitions of R."""
        return -(-self.pages // self.plan.partition_pages)

    @property
    def partition(self) -> float:
        """Return the pages of a partition, on average: the last one can have fewer."""
        return self.pages / self.partitions

    @property
    def page(self) -> float:
        """Return the rows of a page, on average."""
        return self.workload.rows / self.pages

    def first(self, rows: int) -> tuple[float, int]:
        """Return the share of the stream that asks for the first rows of R, and how many of the first ranks they are.

        If R is in no order, these are any rows.
        """
        return (self.head(rows), rows) if self.workload.order == "frequency" else (rows / self.workload.rows, 0)

    def head(self, rows: float) -> float:
        """Return the share of the stream that asks for the first ranks."""
        return float(self.workload.skew.head(np.array([min(rows, self.workload.rows)]))[0])


def predict(plan: Plan, workload: Workload, machine: Machine = PAPERS) -> Prediction:
    """Predict what a plan does; raise ValueError if its join would refuse it: it names the least memory."""
    join = BY_NAME[plan.join]
    if plan.from_key and not issubclass(join, HybridJoin):
        raise ValueError(f"from_key must be False for {join.paper_name}, which looks no key up: leave it out")
    relation = SizedRelation(workload, plan.page_rows)
    split = join.divide(
        relation, workload.stream, workload.on, plan.memory,
        columns=added_columns(workload), shares=plan.shares, output=workload.output,
        partition_pages=plan.partition_pages,
    )  # fmt: skip
    sizes = _Sizes(workload, plan, relation.pages, split, DiskBuffer(relation, ()).single_rows)
    its = JOINS[plan.join](sizes)
    in_memory = min(its.in_memory, _MOST_IN_MEMORY)
    tuples = its.waited / (1 - in_memory)
    disk = machine.disk
    transfer = its.pages * sizes.page * workload.row_bytes / disk.bytes_per_second
    seconds = its.seeks * disk.seek + transfer + its.index * disk.look_up
    seconds += its.probed * machine.look_up + tuples * machine.handle + its.waited * machine.wait
    seconds += its.pages * machine.page
    values = workload.values
    seconds += tuples * values * machine.output + its.single_rows * machine.row_seconds(workload.row_bytes)
    seconds += its.waited * values * machine.value_seconds(workload.rows * workload.row_bytes)
    return Prediction(
        plan=plan,
        split=split,
        rate=tuples / seconds,
        iteration_seconds=seconds,
        tuples=tuples,
        in_memory=in_memory,
        pages_per_1000=1000 * its.pages / tuples,
        rows_per_1000=1000 * its.single_rows / tuples,
        bytes_per_tuple=(its.pages * sizes.page + its.single_rows) * workload.row_bytes / tuples,
        processing_seconds=its.held * seconds / tuples if in_memory < _MOST_IN_MEMORY else 0.0,
        longest_seconds=its.round_iterations * seconds if in_memory < _MOST_IN_MEMORY else 0.0,
    )


def _meshjoin(sizes: _Sizes) -> _Iteration:
    """MESHJOIN 2007, equations 1 and 2: w = h_S / k; a tuple meets its row in one of k partitions (`_half_a_scan`)."""
    return _scan(sizes, 0)


def _r_meshjoin(sizes: _Sizes) -> _Iteration:
    """R-MESHJOIN (X-HYBRIDJOIN 2013, section 2): MESHJOIN without the remainder that w leaves."""
    k, h = sizes.partitions, sizes.split.waiting_slots
    return replace(_scan(sizes, 0), waited=h / k, held=_half_a_scan(h / k, k))


def _cmeshjoin(sizes: _Sizes) -> _Iteration:
    """MESHJOIN for what the front stage does not match (CHYBRIDJOIN 2017, section 3.1)."""
    return _scan(sizes, CACHE_SKILL * sizes.split.cache_slots)


def _scan(sizes: _Sizes, first_rows: float) -> _Iteration:
    """Read the next partition; no tuple for the first rows waits."""
    k = sizes.partitions
    w = sizes.split.waiting_slots // k
    rows = sizes.partition * sizes.page
    return _Iteration(sizes.partition, 1 / k, rows, 0, w, sizes.head(first_rows), _half_a_scan(w, k), k)


def _half_a_scan(w: float, k: int) -> float:
    """Return the tuples of MESHJOIN's window that have not met their row: on average it is in the middle of a scan.

    HYBRIDJOIN 2011, section 3: the processing time is half of the time for the whole of R.
    """
    return w * (k + 1) / 2


def _hybridjoin(sizes: _Sizes) -> _Iteration:
    """HYBRIDJOIN 2011, equations 2 and 3, with w as in `waiting.py`."""
    return _oldest_first(sizes, 0, 0)


def _x_hybridjoin(sizes: _Sizes) -> _Iteration:
    """X-HYBRIDJOIN 2013, equations 5 and 8: each iteration also looks the kept rows up; their tuples stay for one."""
    rows = min(sizes.split.kept_rows, sizes.workload.rows)
    return _oldest_first(sizes, *sizes.first(rows), extra_probed=rows, kept=True)


def _optimised_x_hybridjoin(sizes: _Sizes) -> _Iteration:
    """Optimised X-HYBRIDJOIN 2012, equations 2, 4 and 6: the first h_R rows of R are in memory."""
    return _oldest_first(sizes, *sizes.first(min(sizes.split.cache_slots, sizes.workload.rows)))


def _chybridjoin(sizes: _Sizes) -> _Iteration:
    """HYBRIDJOIN for what the front stage does not match (CHYBRIDJOIN 2017, section 3.2)."""
    cached = CACHE_SKILL * sizes.split.cache_slots
    return _oldest_first(sizes, sizes.head(cached), round(cached))


def _inlj(sizes: _Sizes) -> _Iteration:
    """INLJ: a page for each stream tuple (MESHJOIN 2007, section 2; HYBRIDJOIN 2011, section 3)."""
    return _Iteration(1, 1, sizes.page, 1, 1, 0, 1, 1)


def _cinlj(sizes: _Sizes) -> _Iteration:
    """INLJ for what the front stage does not match (CHYBRIDJOIN 2017, section 3.3)."""
    return _Iteration(1, 1, sizes.page, 1, 1, sizes.head(CINLJ_SKILL * sizes.split.cache_slots), 1, 1)


def _oldest_first(
    sizes: _Sizes, in_memory: float, cached: int, *, extra_probed: int = 0, kept: bool = False
) -> _Iteration:
    """Read the partition of the oldest tuple; the share `in_memory` does not wait, most of it for the first ranks."""
    for_kept = min(in_memory, _MOST_IN_MEMORY) if kept else 0.0
    plan, slots, pages = sizes.plan, sizes.split.waiting_slots, sizes.partition

    def unused(w: float) -> float:
        """Return how many slots are free, or are taken by tuples for kept rows until the next read."""
        freed = w * max(1, ceil(slots * _READ_ON * (1 - for_kept) / w))  # before the join reads on in the stream
        return freed * for_kept / (1 - for_kept) + freed / 2

    if plan.from_key:
        its, pages = simulate(
            sizes.workload, plan.page_rows, plan.partition_pages, slots,
            cached=cached, kept=kept, refill=max(1, int(slots * _READ_ON)),
        )  # fmt: skip
    else:
        rows = plan.page_rows * plan.partition_pages
        its = round_of_the_queue(*page_shares(sizes.workload, rows, cached), slots, unused)
    held = max(slots - unused(its.served), 1)
    if its.served < plan.single_rows_below:
        return _single_rows(sizes, in_memory, held, extra_probed)
    seeks = 1 - 1 / sizes.partitions if sizes.partitions > 1 else 1  # by chance a read follows the one before
    return _Iteration(pages, seeks, pages * sizes.page + extra_probed, 1, its.served, in_memory, held, its.reads)


def _single_rows(sizes: _Sizes, in_memory: float, held: float, extra_probed: int) -> _Iteration:
    """Read the rows of the oldest tuples one by one; none of the papers does."""
    rows = min(held, sizes.single_rows)
    return _Iteration(0, 0, rows + extra_probed, 0, rows, in_memory, held, held / rows, single_rows=rows)


JOINS: dict[str, Callable[[_Sizes], _Iteration]] = {
    "meshjoin": _meshjoin,
    "r_meshjoin": _r_meshjoin,
    "inlj": _inlj,
    "hybridjoin": _hybridjoin,
    "x_hybridjoin": _x_hybridjoin,
    "optimised_x_hybridjoin": _optimised_x_hybridjoin,
    "cmeshjoin": _cmeshjoin,
    "cinlj": _cinlj,
    "chybridjoin": _chybridjoin,
}
