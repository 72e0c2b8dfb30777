"""How long it takes to load a catalogue, to rank it and to publish its snapshot, and how much memory.

Run by `python -m benchmarks.benchmark_refresh`; `--products 2000000` for one size only. MariaDB is the benchmark's own,
with the settings of the system, and works on the same processors. A million keys have an estimate, the others none.
"""

from __future__ import annotations

import argparse
import multiprocessing
import platform
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.stream.own_services import own_services
from services.settings import ROOT, settings
from services.warehouse import connect, login
from spark_apps.master.catalogue import load_catalogue
from spark_apps.master.frequency import WEIGHT, Estimate, store_estimate
from spark_apps.master.publish import write_pages
from spark_apps.master.ranking import build_ranking
from spark_apps.master.tables import Names, prepare
from spark_apps.pipeline import load_pipeline
from spark_apps.semistream.warm_up import warm_up

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_apps.master.ranking import Ranking
    from spark_apps.pipeline import Pipeline

SIZES = (2_000_000, 10_000_000)
ESTIMATED = 1_000_000
KILOBYTES = 1024  # of a megabyte


class Measured(NamedTuple):
    """What a step took."""

    seconds: float
    megabytes: float  # that its process grew by
    made: object  # what it returned


def main() -> None:
    """Measure each size with an empty warehouse, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--products", type=int, nargs="*", default=SIZES, help=f"how many (default: {SIZES})")
    sizes = parser.parse_args().products
    print(f"{platform.processor() or platform.machine()}, {multiprocessing.cpu_count()} processors")
    print("| products | load | rank | snapshot | memory of the snapshot |\n| --- | --- | --- | --- | --- |")
    with own_services():
        for products in sizes:
            empty()
            loaded = alone(load, products)
            prepare(login("owner"), pipeline().master)
            store_estimate(login("loader"), pipeline().master, estimate(products))
            ranked = alone(rank)
            written = alone(snapshot, ranked.made)
            times = " | ".join(f"{each.seconds:.1f} s" for each in (loaded, ranked, written))
            print(f"| {products:,} | {times} | {written.megabytes:.0f} MB |", flush=True)


def pipeline() -> Pipeline:
    """The demo's."""
    return load_pipeline("sales", ROOT / "pipelines")


def empty() -> None:
    """Begin with a product table without rows that nobody follows, and with nothing beside it."""
    beside = Names("product")
    with connect(login("owner")) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = DATABASE()")
        for (trigger,) in cursor.fetchall():
            cursor.execute(f"DROP TRIGGER `{trigger}`")
        for table in (beside.frequency, beside.change, beside.by_rank, beside.next_by_rank):
            cursor.execute(f"DROP TABLE IF EXISTS `{table}`")
        cursor.execute("DELETE FROM master_changes")
        cursor.execute("DELETE FROM master_estimate")
        cursor.execute("TRUNCATE product")


def estimate(products: int) -> Estimate:
    """Give the first keys weights by Zipf's law."""
    keys = np.random.default_rng(3).permutation(products)[:ESTIMATED] + 1
    weights = 1e9 / np.arange(1, len(keys) + 1)
    return Estimate(1, float(weights.sum()), pa.table({"product_id": keys, WEIGHT: weights}))


def alone(step: Callable[..., object], *arguments: object) -> Measured:
    """Run a step in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(measured, step, *arguments).result()


def measured(step: Callable[..., object], *arguments: object) -> Measured:
    """Run a step under the clock, compiled before."""
    warm_up()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.monotonic()
    made = step(*arguments)
    seconds = time.monotonic() - started
    return Measured(seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / KILOBYTES, made)


def load(products: int) -> None:
    """What the Dag prepare_warehouse does."""
    load_catalogue(login("owner"), products)


def rank() -> Ranking:
    """The first half of what refresh_master_order does after its estimate."""
    return build_ranking(login("owner"), pipeline().master)


def snapshot(ranking: Ranking) -> None:
    """The second half, but for the change of hands."""
    write_pages(login("owner"), pipeline().master, ranking, settings().state / "snapshots" / "measured")


if __name__ == "__main__":
    main()
