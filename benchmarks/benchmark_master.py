"""What a join gains from master data in the order of estimated access frequency, before and after drift.

Run it with `python -m benchmarks.benchmark_master`: it prints a table and draws docs/master-order.png. R has 500,000
rows of 120 bytes in pages of 500. The stream is the generator's, Zipfian with exponent 1. A join's memory is 2% of R.
The drift is the worst possible: every rank gets another key. Each estimate counts 500,000 events, and estimates are
merged as the refresh merges them, one half-life apart.

Pages read are exact and the same on every machine. The service rate is tuples per second; its time is processor time
plus the time that the pages take on a modelled SSD. It varies by a tenth with the processor.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
import pyarrow as pa
from semistream.joins import CHybridJoin, HybridJoin, SemiStreamJoin, XHybridJoin
from semistream.modelled_disk import SSD
from semistream.relation import Counters, MemoryRelation

from generator.settings import StreamSettings
from generator.values import draw_ranks, keys_of_ranks
from spark_apps.master.frequency import Estimate, merge

ROWS = 500_000
ROW_BYTES = 120
PAGE_ROWS = 500
MEMORY = ROWS * ROW_BYTES // 50
TUPLES = 500_000
BATCH = 32_768
KEEP = 100_000
HALF_LIFE = 1.0
STREAM = StreamSettings(keys=ROWS, exponent=1.0, seed=11)
SCHEMA = pa.schema([pa.field("key", pa.int64(), nullable=False)])
JOINS: tuple[type[SemiStreamJoin], ...] = (HybridJoin, XHybridJoin, CHybridJoin)
PLOT = Path(__file__).resolve().parents[1] / "docs" / "master-order.png"
NOTHING = Estimate(0, 0.0, pa.table({"key": pa.array([], pa.int64()), "weight": pa.array([], pa.float64())}))


class Measured(NamedTuple):
    """The cost of one join."""

    pages: float  # read per 1,000 tuples
    rate: float  # tuples per second


def events(interval: int, seed: int) -> np.ndarray:
    """Draw the keys of events before (interval 0) or after the drift (interval 1)."""
    ranks = draw_ranks(replace(STREAM, seed=seed), TUPLES)
    return keys_of_ranks(STREAM, ranks, interval)


def count(keys: np.ndarray, until: int) -> Estimate:
    """Count keys, and keep the most frequent ones as an estimate."""
    found, counts = np.unique(keys, return_counts=True)
    heaviest = np.argsort(-counts, kind="stable")[:KEEP]
    weights = pa.table({"key": found[heaviest], "weight": counts[heaviest].astype(np.float64)})
    return Estimate(until, float(len(keys)), weights)


def ranked(estimate: Estimate) -> np.ndarray:
    """Order all keys as the ranking does: those of the estimate first, the others by key."""
    known = estimate.weights["key"].to_numpy()
    return np.concatenate([known, np.setdiff1d(np.arange(1, ROWS + 1), known)])


def relation(order: np.ndarray) -> MemoryRelation:
    """Build R with its keys in an order."""
    columns = {f"column_{i}": order for i in range(ROW_BYTES // 8 - 1)}
    return MemoryRelation(pa.table({"key": order, **columns}), ["key"], PAGE_ROWS)


def batches(keys: np.ndarray) -> Iterator[pa.RecordBatch]:
    """Cut the stream into batches."""
    for first in range(0, len(keys), BATCH):
        yield pa.RecordBatch.from_arrays([pa.array(keys[first : first + BATCH])], schema=SCHEMA)


def measure(kind: type[SemiStreamJoin], order: np.ndarray, interval: int) -> Measured:
    """Join events to compile the kernels and fill the cache, then measure how others are joined."""
    master = relation(order)
    join = kind(master, SCHEMA, "key", MEMORY, columns=["column_0"], output="pairs")
    for batch in batches(events(interval, seed=21)):
        join.feed(batch)
    waiting = join.pending
    before = replace(master.counters)
    started = time.process_time()
    for batch in batches(events(interval, seed=22)):
        join.feed(batch)
    spent = time.process_time() - started
    read = Counters(*(getattr(master.counters, name) - getattr(before, name) for name in Counters.__dataclass_fields__))
    joined = TUPLES + waiting - join.pending
    return Measured(1000 * read.pages_read / joined, joined / (spent + SSD.seconds(read)))


def orders() -> dict[str, tuple[np.ndarray, int]]:
    """Return every order of R with the interval whose events are joined with it."""
    ranks = np.arange(1, ROWS + 1)
    first = merge(NOTHING, count(events(0, seed=31), until=1), HALF_LIFE, KEEP)
    second = merge(first, count(events(1, seed=32), until=2), HALF_LIFE, KEEP)
    return {
        "key order": (ranks, 0),
        "first estimate": (ranked(first), 0),
        "true order": (keys_of_ranks(STREAM, ranks, 0), 0),
        "after drift": (ranked(first), 1),
        "refreshed": (ranked(second), 1),
        "true new order": (keys_of_ranks(STREAM, ranks, 1), 1),
    }


def draw(measured: dict[str, list[Measured]]) -> None:
    """Draw both figures side by side."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, sides = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    places = np.arange(len(measured))
    for side, field, title in zip(
        sides, Measured._fields, ("pages read per 1,000 tuples", "tuples per second"), strict=True
    ):
        for i, kind in enumerate(JOINS):
            heights = [getattr(each[i], field) for each in measured.values()]
            side.bar(places + (i - 1) * 0.27, heights, 0.25, label=kind.__name__)
        side.set_title(title, fontsize=10)
        side.set_xticks(places, list(measured), rotation=30, ha="right", fontsize=8)
        side.axvline(2.5, color="grey", linewidth=0.8, linestyle=":")
        side.spines[["top", "right"]].set_visible(False)
    sides[0].legend(frameon=False, fontsize=8)
    figure.savefig(PLOT, dpi=110, metadata={"Software": None})
    plt.close(figure)


def main() -> None:
    """Measure, print, draw."""
    measured: dict[str, list[Measured]] = {}
    print("| order of the master data | " + " | ".join(kind.__name__ for kind in JOINS) + " |")
    print("| --- |" + " --- |" * len(JOINS))
    for name, (order, interval) in orders().items():
        measured[name] = [measure(kind, order, interval) for kind in JOINS]
        cells = (f"{each.pages:.2f} pages, {each.rate / 1000:,.0f}k/s" for each in measured[name])
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    draw(measured)


if __name__ == "__main__":
    main()
