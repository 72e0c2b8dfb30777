"""What the plans predict beside what the joins do: `python -m benchmarks.benchmark_plans`.

It runs every join of the papers on a modelled disk over a grid of memory, page size, skew and order of R, prints a line
for each point, and draws docs/plans.png. The clock is computed from exact counts, as in benchmark_papers.py, so every
machine prints the same figures. A join runs for 15 to 30 rounds of its queue before the measurement.
"""

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

import matplotlib as mpl
from semistream.joins import BY_NAME
from semistream.memory_split import Shares
from semistream.planning import Plan, Workload, predict
from semistream.planning.predict import JOINS
from semistream.relation import Relation

from benchmarks.benchmark_papers import ROW_BYTES, STREAM, Setting, relation, stream
from benchmarks.papers_clock import seconds

ROWS = 100_000
SETTING = Setting(rows=ROWS)
PAGES = (250, 2000)
MEMORY = (0.05, 0.2)  # of R
EXPONENTS = (0.0, 0.5, 1.0)
LEAST_TUPLES = 300_000
ALONE = {"inlj": 5_000, "cinlj": 30_000}  # they read a page for each tuple
ALONE_AT = (250, 0.05)
PLOT = Path(__file__).resolve().parents[1] / "docs" / "plans.png"


class Point(NamedTuple):
    """One point of the grid: a plan, and the measured rate over the predicted one."""

    join: str
    order: str
    exponent: float
    page_rows: int
    memory: float
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """How far the prediction is off."""
        return abs(self.predicted / self.measured - 1)


def measured(plan: Plan, r: Relation, exponent: float) -> float:
    """Return the rate of a join in its steady state, in stream tuples a modelled second."""
    join = BY_NAME[plan.join](r, STREAM, "key", plan.memory, shares=plan.shares)
    tuples = ALONE.get(plan.join, max(LEAST_TUPLES, 15 * join.split.waiting_slots))
    for batch in stream(SETTING, exponent, tuples, seed=1):
        join.feed(batch)
    start, before = seconds(join), join.stream_buffer.arrived - join.pending
    for batch in stream(SETTING, exponent, tuples, seed=2):
        join.feed(batch)
    return (join.stream_buffer.arrived - join.pending - before) / (seconds(join) - start)


def points() -> Iterator[Point]:
    """Run the grid."""
    for order in ("frequency", "none"):
        for page_rows in PAGES:
            r = relation(SETTING, page_rows, by_frequency=order == "frequency")
            for exponent in EXPONENTS:
                for share in MEMORY:
                    for name in JOINS:
                        if name in ALONE and (page_rows, share) != ALONE_AT:
                            continue
                        plan = Plan(name, int(ROWS * ROW_BYTES * share), page_rows, Shares())
                        workload = Workload.of_the_papers(ROWS, exponent, order)
                        found = predict(plan, workload).rate
                        yield Point(name, order, exponent, page_rows, share, measured(plan, r, exponent), found)


def draw(found: list[Point]) -> None:
    """Draw predicted over measured rates."""
    mpl.use("agg")
    from matplotlib import pyplot as plt  # after the backend is chosen

    figure, axes = plt.subplots(figsize=(7, 6), layout="constrained")
    for name in JOINS:
        its = [point for point in found if point.join == name]
        axes.loglog(
            [p.measured for p in its], [p.predicted for p in its], "o", markersize=4, label=BY_NAME[name].paper_name
        )
    ends = [min(p.measured for p in found), max(p.measured for p in found)]
    axes.loglog(ends, ends, color="grey", linewidth=0.8)
    axes.set_xlabel("measured, tuples a second")
    axes.set_ylabel("predicted")
    axes.legend(fontsize=8)
    figure.savefig(PLOT, dpi=120)


def main() -> None:
    """Print the table, and draw the plot."""
    columns = f"{'order':10} {'e':>4} {'rows/page':>9} {'memory':>7} {'measured':>10} {'predicted':>10} {'ratio':>6}"
    print(f"{'join':24} {columns}")
    found = []
    for point in points():
        found.append(point)
        setting = f"{point.order:10} {point.exponent:4.1f} {point.page_rows:9,} {point.memory:7.0%}"
        rates = f"{point.measured:10,.0f} {point.predicted:10,.0f} {point.predicted / point.measured:6.3f}"
        print(f"{BY_NAME[point.join].paper_name:24} {setting} {rates}", flush=True)
    errors = [point.error for point in found]
    print(f"{len(found)} points: the median error is {median(errors):.1%}, the largest {max(errors):.1%}")
    draw(found)


if __name__ == "__main__":
    main()
