"""The service rate of every join, on the modelled machine of `benchmarks.benchmark_papers`.

Run it with `python -m benchmarks.plot_joins`: it prints a table and draws semistream/service-rates.png. R has 2 million
rows of 120 bytes, in the order of access frequency or in no order. The stream is Zipfian with exponent 1. A join's
memory is 10% of R. Pages have 16,000 rows; INLJ and CINLJ read blocks of 34 rows (4 KB). The clock is computed from
exact counts, so every machine draws the same figure.
"""

from pathlib import Path

import matplotlib as mpl
from semistream.joins import BY_NAME, IndexNestedLoopJoin, OrderedMeshJoin

from benchmarks.benchmark_papers import Setting, relation, service_rate

SETTING = Setting(lone_tuples=20_000)
SHARE = 0.1
ORDERS = {"R in the order of frequency": True, "R in no order": False}
PLOT = Path(__file__).resolve().parents[1] / "semistream" / "service-rates.png"
Rates = dict[str, dict[str, float]]  # by order of R and by the join's name in the papers


def measure() -> Rates:
    """Return the service rate of each join over each order of R."""
    rates: Rates = {order: {} for order in ORDERS}
    for order, by_frequency in ORDERS.items():
        pages = relation(SETTING, SETTING.large_page_rows, by_frequency=by_frequency)
        blocks = relation(SETTING, SETTING.block_rows, by_frequency=by_frequency)
        for name, join in BY_NAME.items():
            if join is not OrderedMeshJoin:  # whose rate is MESHJOIN's
                r = blocks if issubclass(join, IndexNestedLoopJoin) else pages
                rates[order][join.paper_name] = service_rate(name, r, SETTING, SHARE)
    return rates


def draw(rates: Rates) -> None:
    """Draw a bar per join and order of R, the fastest join on top."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.4), layout="constrained")
    names = sorted(rates["R in no order"], key=rates["R in no order"].__getitem__)
    for i, (order, of_join) in enumerate(rates.items()):
        places = [place + 0.2 - 0.4 * i for place in range(len(names))]
        bars = axes.barh(places, [of_join[name] for name in names], 0.38, label=order)
        axes.bar_label(bars, [f"{of_join[name]:,.0f}" for name in names], padding=4, fontsize=7)
    axes.set_yticks(range(len(names)), names)
    axes.set_xscale("log")
    axes.set_xlim(left=10, right=4 * max(max(of_join.values()) for of_join in rates.values()))
    axes.set_xlabel("stream tuples per second")
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PLOT, dpi=110, metadata={"Software": None})
    plt.close(figure)


def main() -> None:
    """Measure, print, draw."""
    rates = measure()
    for order, of_join in rates.items():
        for name, rate in of_join.items():
            print(f"{order:30} {name:24} {rate:12,.0f} tuples/s")
    draw(rates)


if __name__ == "__main__":
    main()
