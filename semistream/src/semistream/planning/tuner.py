"""Choose page size or partition size, division of memory and join by the cost models.

The papers tune one join by calculus over its cost model (MESHJOIN 2007, section 3.2; HYBRIDJOIN 2011, section 4.5;
Optimised X-HYBRIDJOIN 2012, section 4.4.3; X-HYBRIDJOIN 2013, section 6). Here a coarse grid and a finer one around its
best point do the same for every join and device. Where the pages of R are given, the grid is over partitions of them.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from semistream.joins import BY_NAME, HybridJoin
from semistream.memory_split import Shares
from semistream.planning.machine import PAPERS, Machine
from semistream.planning.predict import JOINS, Plan, Prediction, predict
from semistream.planning.workload import Workload
from semistream.relation.base import check_page_rows

__all__ = ["Goal", "NoPlanError", "best_of_each", "least_memory", "tune", "with_single_rows"]

_COARSE_PAGES = [2**power for power in range(4, 21, 2)]
_COARSE_SHARES = (0.0, 0.05, 0.15, 0.3, 0.5, 0.7)
_FINER = (0.5, 0.7, 1.0, 1.4, 2.0)
_LEAST_SHARE, _MOST_SHARE = 0.005, 0.9
_ROUNDS = 2
_MEMORY_STEPS = 12
_LEAST_PART, _PART_STEPS = 1 / 1024, 8  # of the memory, where tuples would wait for too long
_Cut = tuple[int, int]  # the rows of a page, and the pages of a partition


class NoPlanError(ValueError):
    """No plan reaches the goal: the message says which goal, and the nearest plan."""


@dataclass(frozen=True)
class Goal:
    """What a plan must keep.

    Attributes:
        longest_seconds: the longest processing time that a tuple may have; None for any.
    """

    longest_seconds: float | None = None

    def __post_init__(self) -> None:
        longest = self.longest_seconds
        if longest is not None and not 0 < longest < math.inf:
            raise ValueError(
                f"longest wait must be a number of seconds, more than 0, got {longest:g}: give one, or leave it out"
            )

    def is_met(self, found: Prediction) -> bool:
        """Return whether a prediction keeps it."""
        return self.longest_seconds is None or found.longest_seconds <= self.longest_seconds


def tune(
    workload: Workload,
    memory: int,
    machine: Machine = PAPERS,
    *,
    joins: Sequence[str] = tuple(JOINS),
    page_rows: int | None = None,
    goal: Goal | None = None,
) -> Prediction:
    """Return the plan with the best rate.

    A plan with a bound on the wait may use less memory than it is given: with more, H_S has more tuples, and each waits
    for longer.

    Args:
        workload: what is joined.
        memory: bytes, at most.
        machine: where.
        joins: the joins to choose from.
        page_rows: the rows of a page, if they are given; then a partition gets as many pages as is best.
        goal: what a plan must keep.

    Raises:
        NoPlanError: the memory is too small for each of the joins, or none keeps the goal.
    """
    found = best_of_each(workload, memory, machine, joins=joins, page_rows=page_rows, goal=goal)
    if not found:
        wanted = "" if goal is None or goal.longest_seconds is None else f" with waits of {goal.longest_seconds:g} s"
        raise NoPlanError(
            f"memory must be enough for one of {', '.join(joins)}{wanted}, got {memory} bytes: give it more memory"
            f"{', or a longer wait' if wanted else ''}"
        )
    return max(found.values(), key=lambda each: each.rate)


def best_of_each(  # as `tune`
    workload: Workload,
    memory: int,
    machine: Machine = PAPERS,
    *,
    joins: Sequence[str] = tuple(JOINS),
    page_rows: int | None = None,
    goal: Goal | None = None,
) -> dict[str, Prediction]:
    """Return the best plan of each join; a join whose parts do not fit is left out."""
    if page_rows is not None:
        check_page_rows(page_rows)
    found = {}
    for join in joins:
        best = _best(join, workload, memory, machine, page_rows, goal or Goal())
        if best is not None:
            found[join] = best
    return found


def least_memory(
    workload: Workload,
    rate: float,
    machine: Machine = PAPERS,
    *,
    page_rows: int | None = None,
    goal: Goal | None = None,
) -> Prediction:
    """Return the plan with the least memory, to one percent, that reaches a rate (MESHJOIN 2007, section 3.2).

    Raises:
        NoPlanError: not even as much memory as R reaches the rate.
    """
    if not 0 < rate < math.inf:
        raise ValueError(f"rate must be a number of tuples a second, more than 0, got {rate:g}: give one")
    most = workload.rows * workload.row_bytes
    best = tune(workload, most, machine, page_rows=page_rows, goal=goal)
    if best.rate < rate:
        raise NoPlanError(
            f"rate must be at most {best.rate:,.0f} a second, which {most} bytes (all of R) reach with "
            f"{best.plan.join}, got {rate:,.0f}: use a faster device, or several tasks"
        )
    low, high = most // 10_000, most
    for _ in range(_MEMORY_STEPS):
        middle = round((low * high) ** 0.5)
        found = best_of_each(workload, middle, machine, page_rows=page_rows, goal=goal)
        fastest = max(found.values(), key=lambda each: each.rate, default=None)
        if fastest is not None and fastest.rate >= rate:
            high, best = middle, fastest
        else:
            low = middle
    return best


def _best(
    join: str, workload: Workload, memory: int, machine: Machine, page_rows: int | None, goal: Goal
) -> Prediction | None:
    needs = BY_NAME[join].needs
    shares: Iterable[float] = _COARSE_SHARES if needs.front_stage or needs.kept_rows else (0.0,)
    cuts = _cuts(join, _COARSE_PAGES, workload.rows, page_rows)
    best = _fastest(join, workload, memory, machine, goal, product(cuts, shares))
    for _ in range(_ROUNDS):
        if best is None:
            return None
        around, share = best.plan.page_rows * best.plan.partition_pages, best.plan.shares.front_stage
        finer_cuts = _cuts(join, [round(around * factor) for factor in _FINER], workload.rows, page_rows)
        finer_shares = {share} | {min(max(share * factor, _LEAST_SHARE), _MOST_SHARE) for factor in _FINER if share}
        finer = _fastest(join, workload, memory, machine, goal, product(finer_cuts, finer_shares))
        best = max((each for each in (best, finer) if each), key=_merit)
    return best


def with_single_rows(plan: Plan, workload: Workload, machine: Machine) -> Plan:
    """Return the plan with the bound below which single rows are quicker than partitions, if its join reads them."""
    kind = BY_NAME[plan.join]
    if not (workload.reads_rows and issubclass(kind, HybridJoin) and kind.partitioned):
        return plan
    below = machine.single_rows_below(plan.page_rows * plan.partition_pages, workload.row_bytes)
    return replace(plan, single_rows_below=below)


def _merit(found: Prediction) -> tuple[int, float]:
    """Compare by the rate and, where that is the same to a thousandth, by the front stage.

    If all of R is in memory, a larger front stage leaves room for more rows, and for longer strings than expected.
    """
    return round(1000 * math.log(found.rate)), found.plan.shares.front_stage


def _cuts(join: str, sizes: Iterable[int], rows: int, page_rows: int | None) -> list[_Cut]:
    """Return ways to read about so many rows at once: pages of that size, or partitions of the given pages."""
    if page_rows is None:
        return [(max(size, 1), 1) for size in sizes]
    most = -(-rows // page_rows) if BY_NAME[join].partitioned else 1
    return sorted({(page_rows, min(max(round(size / page_rows), 1), most)) for size in sizes})


def _fastest(
    join: str,
    workload: Workload,
    memory: int,
    machine: Machine,
    goal: Goal,
    points: Iterable[tuple[_Cut, float]],
) -> Prediction | None:
    best: Prediction | None = None
    for (page_rows, partition_pages), share in points:
        plan = Plan(join, memory, page_rows, Shares(front_stage=share), partition_pages)
        plan = with_single_rows(plan, workload, machine)
        found = _within(goal, plan, workload, machine, best.rate if best else 0.0)
        if found and (best is None or _merit(found) > _merit(best)):
            best = found
    return best


def _within(goal: Goal, plan: Plan, workload: Workload, machine: Machine, rate: float) -> Prediction | None:
    """Return what the plan does with its memory or, if that misses the goal, with as much of it as keeps the goal.

    It stops where even a plan that misses the goal has no more than the rate: less memory is not faster.
    """
    kept: Prediction | None = None
    memory, low, high = plan.memory, round(plan.memory * _LEAST_PART) + 1, plan.memory
    for _ in range(1 + _PART_STEPS):
        try:
            found = predict(replace(plan, memory=memory), workload, machine)
        except ValueError:  # the parts do not fit
            if memory == plan.memory:
                return None
            low = memory
        else:
            if goal.is_met(found):
                kept, low = found, memory
            elif found.rate <= rate:
                return kept
            else:
                high = memory
        if low == plan.memory:
            return kept
        memory = round(math.sqrt(low * high))
    return kept
