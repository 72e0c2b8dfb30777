"""How long each step of a refresh takes, and how much memory: load, estimate, rank, check, write the snapshot.

Run by `python -m benchmarks.benchmark_refresh`; `--products 2000000` for one size only. Kafka and MariaDB are the
benchmark's own, with the settings of the system, and work on the same processors. Memory is the growth of the step's
process; for the estimate, it is the whole memory of the largest process, Spark's JVM.
"""

from __future__ import annotations

import argparse
import multiprocessing
import platform
import resource
import shutil
import time
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from semistream.warm_up import warm_up

from benchmarks.stream.own_services import own_services
from benchmarks.stream.programs import Program
from benchmarks.stream.setting import ESTIMATE, fill_topic
from foundation.connections import connect, login
from foundation.settings import ROOT, settings
from spark_apps.master.catalogue import load_catalogue
from spark_apps.master.publish import write_pages
from spark_apps.master.ranking import build_ranking
from spark_apps.master.tables import Names, prepare
from spark_apps.pipeline.definition import read_pipeline

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_apps.master.ranking import Ranking
    from spark_apps.pipeline.definition import Pipeline

SIZES = (2_000_000, 10_000_000)
EVENTS = 4_000_000
KILOBYTES = 1024  # of a megabyte


class Measured(NamedTuple):
    """What a step took."""

    seconds: float
    megabytes: float
    made: object  # what it returned

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s, {self.megabytes:.0f} MB"


def main() -> None:
    """Measure each size with an empty warehouse, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--products", type=int, nargs="*", default=SIZES, help=f"how many (default: {SIZES})")
    sizes = parser.parse_args().products
    print(f"{platform.processor() or platform.machine()}, {multiprocessing.cpu_count()} processors")
    print("| products | load | estimate | rank | check | snapshot |\n| --- | --- | --- | --- | --- | --- |")
    with own_services() as config:
        shutil.copytree(ROOT / "pipelines", config.pipelines)
        fill_topic(config, pipeline().source.topic, "--events", EVENTS, "--keys", min(sizes))
        for products in sizes:
            empty()
            loaded = alone(load, products)
            prepare(login("owner"), pipeline().master)
            estimated, ranked = alone(estimate), alone(rank)
            checked, written = alone(check, ranked.made), alone(snapshot, ranked.made)
            print(f"| {products:,} | {loaded} | {estimated} | {ranked} | {checked} | {written} |", flush=True)


def pipeline() -> Pipeline:
    """Return the demo's pipeline."""
    return read_pipeline("sales", ROOT / "pipelines")


def empty() -> None:
    """Remove the products' rows, triggers and estimate, and the tables beside the product table."""
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


def alone(step: Callable[..., object], *arguments: object) -> Measured:
    """Run a step in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(measured, step, *arguments).result()


def measured(step: Callable[..., object], *arguments: object) -> Measured:
    """Measure a step; its kernels are compiled before."""
    warm_up()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.monotonic()
    made = step(*arguments)
    seconds = time.monotonic() - started
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return Measured(seconds, max(grown, child) / KILOBYTES, made)


def load(products: int) -> None:
    """Load the catalogue, as the Dag load_catalogue does."""
    load_catalogue(login("owner"), products)


def estimate() -> None:
    """Count the topic's events and store the estimate: the first step of the Dag sales.refresh."""
    Program(settings(), ESTIMATE, "--pipeline", pipeline().name).wait()


def rank() -> Ranking:
    """Build the ranked copy: the second step."""
    return build_ranking(login("owner"), pipeline().master)


def check(ranking: Ranking) -> None:
    """Check the ranked copy: the third step, with its imports."""
    from quality.master import check_ranking  # not at the top: it ends a process that is still being spawned

    outcome = check_ranking(login("checker"), pipeline().master, ranking, 1)
    if outcome.failures:
        raise SystemExit(f"the benchmark's own copy is refused: {outcome.failures}")


def snapshot(ranking: Ranking) -> None:
    """Write the page file: the last step, without the swap of the ranked copies and without the manifest."""
    write_pages(login("owner"), pipeline().master, ranking, settings().folders.snapshots("measured"))


if __name__ == "__main__":
    main()
