"""CHYBRIDJOIN 2017 at its own size: `python -m benchmarks.benchmark_papers_size`.

R has 100 million rows of 120 bytes in no order, a page has 4,000 rows, the stream has Zipf's exponent 1, and a join has
1% or 10% of R as memory: 120 MB or 1.2 GB, which it really takes (section 5.1). Rows of R are computed when their page
is read. The clock, and when a join is warm, are those of benchmark_papers.py. MESHJOIN reads one page for w tuples
whatever these are, so its rate is computed. The others run.

Each line has the measured rate beside the predicted one. The ratios also have what the models predict for the front
stage that they find best.
"""

import time
from collections.abc import Iterator

from semistream.joins import BY_NAME
from semistream.planning import Plan, Prediction, Workload, predict
from semistream.planning.tuner import tune

from benchmarks.benchmark_papers import ROW_BYTES, STREAM, Round, Setting, fed, steady_rate
from benchmarks.shuffled_relation import ShuffledRelation

SETTING = Setting(rows=100_000_000)
WORKLOAD = Workload.of_the_papers(SETTING.rows, 1.0, "none", ROW_BYTES)
TUPLES = {0.1: 50_000_000, 0.01: 5_000_000}  # of a round, by the share of R that is memory: some rounds of the queue
NAMES = ("chybridjoin", "hybridjoin", "cmeshjoin", "meshjoin")
PAPER = {0.1: ("2.8", "6.5"), 0.01: ("2.4", "4")}
MINUTES = 30


def measured(found: Prediction, tuples: int) -> float:
    """Return the steady rate of a plan, in stream tuples a modelled second, and print its rounds."""
    plan = found.plan
    if plan.join == "meshjoin":
        return found.rate
    join = BY_NAME[plan.join](
        ShuffledRelation(WORKLOAD, plan.page_rows), STREAM, "key", plan.memory, shares=plan.shares
    )
    return steady_rate(plan.join, told(plan.join, fed(join, SETTING, WORKLOAD.exponent, tuples)))


def told(name: str, rounds: Iterator[Round]) -> Iterator[Round]:
    """Print each round when it is over."""
    start = time.monotonic()
    for number, (joined, took) in enumerate(rounds, 1):
        passed = time.monotonic() - start
        print(f"    {name}, round {number}: {joined / took:,.0f} tuples/s, after {passed:.0f} s", flush=True)
        yield joined, took


def compare(share: float) -> None:
    """Print the rates of the four joins with a memory, and the ratios."""
    memory = int(SETTING.rows * ROW_BYTES * share)
    plans = {name: predict(Plan(name, memory, SETTING.page_rows), WORKLOAD) for name in NAMES}
    rates = {}
    for name, found in plans.items():
        rates[name] = measured(found, TUPLES[share])
        print(f"{share:4.0%} {name:12} {rates[name]:8,.0f} tuples/s, predicted {found.rate:8,.0f}", flush=True)
    for cached, plain, paper in zip(NAMES[::2], NAMES[1::2], PAPER[share], strict=True):
        title = f"{BY_NAME[cached].paper_name} / {BY_NAME[plain].paper_name}"
        predicted = plans[cached].rate / plans[plain].rate
        best = tune(WORKLOAD, memory, joins=[cached], page_rows=SETTING.page_rows)
        print(
            f"{share:4.0%} {title}: {rates[cached] / rates[plain]:.2f}, the paper {paper}, predicted {predicted:.2f}, "
            f"and {best.rate / plans[plain].rate:.2f} with the best front stage, {best.plan.shares.front_stage:.1%}",
            flush=True,
        )


def main() -> None:
    """Compare the joins with little and with much memory."""
    print(f"The papers' own size: about {MINUTES} minutes on a free core, and up to 2 GB of memory.", flush=True)
    for share in TUPLES:
        compare(share)


if __name__ == "__main__":
    main()
