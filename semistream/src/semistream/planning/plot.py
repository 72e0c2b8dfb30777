"""Draw a plan: the rate of each join over memory, and the chosen join's over page size and share of the front stage."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from semistream.joins import BY_NAME
from semistream.memory_split import Shares
from semistream.planning.machine import Machine
from semistream.planning.predict import Plan, Prediction, predict
from semistream.planning.tuner import Goal, best_of_each, with_single_rows
from semistream.planning.workload import Workload

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]

_AROUND = np.geomspace(1 / 8, 8, 7)  # of the memory
_PAGES = np.unique(np.geomspace(4, 2**20, 60).astype(int)).tolist()
_SHARES = np.linspace(0, 0.9, 46).tolist()


def draw(  # as the tuner
    found: Mapping[str, Prediction],
    workload: Workload,
    memory: int,
    machine: Machine,
    *,
    page_rows: int | None = None,
    goal: Goal | None = None,
) -> "Figure":
    """Draw the best plans that were found for a memory, and those around them.

    Args:
        found: the best plan of each join.
        workload: what is joined.
        memory: bytes.
        machine: where.
        page_rows: the rows of a page, if they are given.
        goal: what a plan must keep.

    Raises:
        ValueError: matplotlib is missing.
    """
    figure = _figure()
    ranked = sorted(found.values(), key=lambda each: -each.rate)
    best = ranked[0].plan
    needs, name = BY_NAME[best.join].needs, BY_NAME[best.join].paper_name
    has_front_stage = needs.front_stage or needs.kept_rows
    over_memory, over_pages, *over_shares = figure.subplots(1, 3 if has_front_stage else 2)

    memories = [int(memory * factor) for factor in _AROUND]
    plans = [best_of_each(workload, each, machine, page_rows=page_rows, goal=goal) for each in memories]
    for number, each in enumerate(reversed(ranked)):
        here = [at.get(each.plan.join) for at in plans]
        points = [(m / 2**20, its.rate) for m, its in zip(memories, here, strict=True) if its]
        style = "--" if number % 2 else "-"  # and above the others: of two equal lines both are seen
        label = BY_NAME[each.plan.join].paper_name
        over_memory.loglog(*zip(*points, strict=True), style, marker=".", zorder=2 + number % 2, label=label)
    over_memory.set_xticks([m / 2**20 for m in memories], [f"{m / 2**20:,.3g}" for m in memories])
    over_memory.minorticks_off()
    _finish(over_memory, "the best plan of each join", "memory, MB", (memory / 2**20, ranked[0].rate))

    def rates(plans: Mapping[float, Plan]) -> tuple[list[float], list[float]]:
        points = {value: _rate(plan, workload, machine) for value, plan in plans.items()}
        return [value for value, rate in points.items() if rate], [rate for rate in points.values() if rate]

    sizes = [rows for rows in _PAGES if rows <= workload.rows]
    pages = {rows: with_single_rows(replace(best, page_rows=rows), workload, machine) for rows in sizes}
    over_pages.loglog(*rates(pages))
    over_pages.xaxis.set_major_formatter("{x:,.0f}")
    divided = f", front stage {best.shares.front_stage:.0%}" if has_front_stage else ""
    _finish(over_pages, name + divided, "rows of a page", (best.page_rows, ranked[0].rate))
    for axes in over_shares:
        axes.plot(*rates({share: replace(best, shares=Shares(front_stage=share)) for share in _SHARES}))
        title = f"{name}, pages of {best.page_rows:,} rows"
        _finish(axes, title, "share of memory for the front stage", (best.shares.front_stage, ranked[0].rate))
    figure.legend(
        *over_memory.get_legend_handles_labels(), loc="outside lower center", ncols=len(found) + 1, fontsize=8
    )
    return figure


def _figure() -> "Figure":
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError(
            "matplotlib must be installed to draw a plot, it is not: run pip install matplotlib, or leave --plot out"
        ) from None
    return Figure(figsize=(15, 5.2), layout="constrained")


def _finish(axes: Any, title: str, across: str, chosen: tuple[float, float]) -> None:  # noqa: ANN401 - matplotlib may be missing
    """Mark the chosen point, and name the axes."""
    axes.plot(*chosen, "*", color="black", markersize=12, label="the choice")
    axes.set(title=title, xlabel=across, ylabel="predicted tuples a second")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.grid(visible=True, alpha=0.3)


def _rate(plan: Plan, workload: Workload, machine: Machine) -> float | None:
    """Return a plan's rate, or None if its parts do not fit."""
    try:
        return predict(plan, workload, machine).rate
    except ValueError:
        return None
