"""What the plans predict beside what the joins do: `python -m benchmarks.benchmark_plans`.

It runs every join of the papers on a modelled disk over a grid of memory, page size, partitions, skew and order of R,
prints a line for each point, and draws docs/plans.png. A few points more have a larger R on an SSD. The clock is
computed from exact counts, as in benchmark_papers.py, so every machine prints the same figures.

A join runs until as many tuples have waited as fill H_S 20 times, and is measured while as many wait again. Where R has
few large pages, the rate of a single round of the queue is up to a tenth above or below that.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

import matplotlib as mpl
from semistream.joins import BY_NAME, SemiStreamJoin
from semistream.memory_split import Shares
from semistream.modelled_disk import DISK_7200_RPM, SSD, ModelledDisk
from semistream.planning import PAPERS, Plan, Prediction, Workload, predict
from semistream.planning.predict import JOINS
from semistream.relation import Relation

from benchmarks.benchmark_papers import ROW_BYTES, STREAM, Setting, relation, stream
from benchmarks.papers_clock import seconds

ROWS, MORE_ROWS = 100_000, 400_000
SETTING = Setting(rows=ROWS)
CUTS = ((250, 1, False), (2000, 1, False), (250, 8, False), (250, 8, True))  # rows of a page, pages read, from the key
MEMORY = (0.05, 0.2)  # of R
EXPONENTS = (0.0, 0.5, 1.0)
FILLINGS = 20
ALONE = {"inlj": 5_000, "cinlj": 30_000}  # they read a page for each tuple
ALONE_AT = ((250, 1, False), 0.05)
PLOT = Path(__file__).resolve().parents[1] / "docs" / "plans.png"


class Point(NamedTuple):
    """One point of the grid: a plan for a workload, its share of R as memory, and the measured and predicted rate."""

    plan: Plan
    workload: Workload
    memory: float
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """How far the prediction is off."""
        return abs(self.predicted / self.measured - 1)


def join_of(plan: Plan, r: Relation) -> SemiStreamJoin:
    """Make the join of a plan."""
    return BY_NAME[plan.join](r, STREAM, "key", **plan.options())


def measured(
    found: Prediction, r: Relation, exponent: float, setting: Setting = SETTING, disk: ModelledDisk = DISK_7200_RPM
) -> float:
    """Return the rate of a plan's join, in stream tuples a modelled second."""
    join = join_of(found.plan, r)
    filling = found.split.waiting_slots / (1 - found.in_memory)  # stream tuples of which h_S wait
    tuples = ALONE.get(found.plan.join, int(FILLINGS * filling))
    for batch in stream(setting, exponent, tuples, seed=1):
        join.feed(batch)
    start, before = seconds(join, disk), join.stream_buffer.arrived - join.pending
    for batch in stream(setting, exponent, tuples, seed=2):
        join.feed(batch)
    return (join.stream_buffer.arrived - join.pending - before) / (seconds(join, disk) - start)


def points() -> Iterator[Point]:
    """Run the grid."""
    for order in ("frequency", "none"):
        for cut in CUTS:
            page_rows, partition_pages, from_key = cut
            r = relation(SETTING, page_rows, by_frequency=order == "frequency")
            for exponent in EXPONENTS:
                for share in MEMORY:
                    for name in JOINS:
                        if (name in ALONE and (cut, share) != ALONE_AT) or (from_key and "mesh" in name):
                            continue
                        plan = Plan(name, int(ROWS * ROW_BYTES * share), page_rows, Shares(), partition_pages, from_key)
                        workload = Workload.of_the_papers(ROWS, exponent, order)
                        found = predict(plan, workload)
                        yield Point(plan, workload, share, measured(found, r, exponent), found.rate)


def elsewhere() -> Iterator[Point]:
    """Run every join once for each order of a larger R, which is on another disk."""
    setting, machine = Setting(rows=MORE_ROWS), replace(PAPERS, disk=SSD)
    (page_rows, partition_pages, _), share = ALONE_AT
    for order in ("frequency", "none"):
        r = relation(setting, page_rows, by_frequency=order == "frequency")
        workload = Workload.of_the_papers(MORE_ROWS, 1.0, order)
        for name in JOINS:
            plan = Plan(name, int(MORE_ROWS * ROW_BYTES * share), page_rows, Shares(), partition_pages)
            found = predict(plan, workload, machine)
            yield Point(plan, workload, share, measured(found, r, 1.0, setting, SSD), found.rate)


def draw(found: list[Point]) -> None:
    """Draw predicted over measured rates."""
    mpl.use("agg")
    from matplotlib import pyplot as plt  # after the backend is chosen

    figure, axes = plt.subplots(figsize=(7, 6), layout="constrained")
    for name in JOINS:
        its = [point for point in found if point.plan.join == name]
        axes.loglog(
            [p.measured for p in its], [p.predicted for p in its], "o", markersize=4, label=BY_NAME[name].paper_name
        )
    ends = [min(p.measured for p in found), max(p.measured for p in found)]
    axes.loglog(ends, ends, color="grey", linewidth=0.8)
    axes.set_xlabel("measured, tuples a second")
    axes.set_ylabel("predicted")
    axes.legend(fontsize=8)
    figure.savefig(PLOT, dpi=120)


def print_table(points: Iterable[Point]) -> list[Point]:
    """Print a line for each point as soon as it is measured; return all."""
    cut = f"{'rows/page':>9} {'pages/read':>10} {'from':>4}"
    rates = f"{'measured':>10} {'predicted':>10} {'ratio':>6}"
    print(f"{'join':24} {'order':10} {'e':>4} {cut} {'memory':>7} {rates}")
    found = []
    for point in points:
        found.append(point)
        plan = point.plan
        cut = f"{plan.page_rows:9,} {plan.partition_pages:10} {'key' if plan.from_key else '':>4}"
        rates = f"{point.measured:10,.0f} {point.predicted:10,.0f} {point.predicted / point.measured:6.3f}"
        setting = f"{point.workload.order:10} {point.workload.exponent:4.1f} {cut} {point.memory:7.0%}"
        print(f"{BY_NAME[plan.join].paper_name:24} {setting} {rates}", flush=True)
    return found


def print_errors(name: str, found: list[Point]) -> None:
    """Print how far the predictions of some points are off."""
    errors = [point.error for point in found]
    print(f"{len(errors)} points, {name}: the median error is {median(errors):.1%}, the largest {max(errors):.1%}")


def main() -> None:
    """Print the tables, and draw the plot."""
    found = print_table(points())
    print_errors("aligned", [point for point in found if not point.plan.from_key])
    print_errors("from the key", [point for point in found if point.plan.from_key])
    print_errors(f"R of {MORE_ROWS:,} rows on an SSD", print_table(elsewhere()))
    draw(found)


if __name__ == "__main__":
    main()
