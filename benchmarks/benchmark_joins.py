"""How fast the joins are on this machine, compared with an in-memory hash join of the same rows.

Run it with `python -m benchmarks.benchmark_joins`. R has 2 million rows of 120 bytes in a memory-mapped page file, in
the order of frequency. The stream is Zipfian with exponent 1; its tuples have 20 bytes. A join has a tenth of R's size
as memory, divided by the planner, and one core. In each turn every contender joins the same new tuples. The figure is
the median of the turns, the noise band their spread. Processor time is measured, so that other processes on the machine
disturb little.
"""

import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
from semistream.joins import CHybridJoin, HybridJoin, SemiStreamJoin
from semistream.planning import Prediction, Workload
from semistream.planning.machine import on_this_processor
from semistream.planning.tuner import tune
from semistream.relation import PageFile, write_page_file

from benchmarks.benchmark_papers import ROW_BYTES, Setting, stream

ROWS = 2_000_000
PAGE_ROWS = 32_000
MEMORY = ROWS * ROW_BYTES // 10
TUPLES = 2_000_000
WARMING, TURNS = 4, 15  # the cache takes some millions of tuples to learn which rows are frequent
Kind = Literal["rows", "pairs"]
JOINS: dict[str, type[HybridJoin]] = {"chybridjoin": CHybridJoin, "hybridjoin": HybridJoin}


def rows(first: int, count: int) -> pa.RecordBatch:
    """Make rows of R: a key and fourteen numbers."""
    keys = np.arange(first, first + count)
    columns = {f"column_{i}": keys + i for i in range(ROW_BYTES // 8 - 1)}
    fields = [pa.field(name, pa.int64(), nullable=False) for name in ("id", *columns)]
    return pa.RecordBatch.from_arrays(
        [pa.array(values) for values in (keys, *columns.values())], schema=pa.schema(fields)
    )


def batches() -> Iterator[pa.RecordBatch]:
    """Make R piece by piece."""
    return (rows(first, 50_000) for first in range(0, ROWS, 50_000))


def tuples(turn: int) -> list[pa.RecordBatch]:
    """Draw the stream's tuples of a turn."""
    return list(stream(Setting(rows=ROWS), 1.0, TUPLES, turn))


def plan(name: str, rows_of_r: int, memory: int, output: Kind) -> Prediction:
    """Plan a join for a page file that is in memory."""
    workload = replace(Workload.of_the_papers(rows_of_r), output=output, reads_rows=True)
    return tune(workload, memory, on_this_processor("page-cache"), joins=[name], page_rows=PAGE_ROWS)


def planned_join(name: str, relation: PageFile, stream_schema: pa.Schema, memory: int, output: Kind) -> HybridJoin:
    """Make a join with the planner's parameters."""
    options = plan(name, relation.row_count, memory, output).plan.options()
    return JOINS[name](relation, stream_schema, "key", output=output, **options)


def rate(work: Callable[[], object]) -> float:
    """Measure tuples per second of processor time."""
    start = time.process_time()
    work()
    return TUPLES / (time.process_time() - start)


def anonymous_memory() -> int:
    """Return the bytes of memory that the process has for itself, without mapped files."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("RssAnon:")[1].split()[0]) * 1024


def report(rates: dict[str, list[float]]) -> None:
    """Print the ratios, then the rates in millions of tuples a second: medians with their noise bands."""
    ours = rates["CHYBRIDJOIN, full rows as Arrow"]
    for name in [name for name in rates if name.startswith("pyarrow")]:
        turns = [a / b for a, b in zip(ours, rates[name], strict=True)]
        spread = f"({min(turns):.2f} to {max(turns):.2f})"
        print(f"{'CHYBRIDJOIN / ' + name:60} {statistics.median(turns):6.2f}   {spread}")
    for name, measured in rates.items():
        low, high = min(measured) / 1e6, max(measured) / 1e6
        print(f"{name:44} {statistics.median(measured) / 1e6:6.2f} M/s   ({low:.2f} to {high:.2f})")


def main() -> None:
    """Measure, then print the ratios, the rates and the memory."""
    pa.set_cpu_count(1)
    schema = tuples(0)[0].schema
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "r"
        write_page_file(path, rows(0, 0).schema, batches(), ["id"], PAGE_ROWS)

        def join(name: str, output: Kind) -> HybridJoin:
            return planned_join(name, PageFile(path), schema, MEMORY, output)

        before = anonymous_memory()
        joins = {
            "CHYBRIDJOIN, keys with row positions": join("chybridjoin", "pairs"),
            "CHYBRIDJOIN, full rows as Arrow": join("chybridjoin", "rows"),
            "HYBRIDJOIN, full rows as Arrow": join("hybridjoin", "rows"),
        }

        def feed(into: SemiStreamJoin, batches: list[pa.RecordBatch]) -> None:
            for batch in batches:
                into.feed(batch)

        def hashed(batches: list[pa.RecordBatch], *, of_master: bool) -> pa.Table:
            table = pa.Table.from_batches(batches)
            if of_master:
                return table.join(master, "key", "id", join_type="inner", use_threads=False)
            return master.join(table, "id", "key", join_type="inner", use_threads=False)

        for warming in joins.values():
            warming.preload()
            for turn in range(WARMING):
                feed(warming, tuples(turn))
        pa.default_memory_pool().release_unused()
        grown = anonymous_memory() - before
        master = pa.Table.from_batches(list(batches()))
        work: dict[str, Callable[[list[pa.RecordBatch]], object]] = {
            name: partial(feed, each) for name, each in joins.items()
        }
        work["pyarrow, hash table of R, full rows"] = partial(hashed, of_master=True)
        work["pyarrow, hash table of the stream, full rows"] = partial(hashed, of_master=False)
        rates: dict[str, list[float]] = {name: [] for name in work}
        for turn in range(WARMING, WARMING + TURNS):
            fresh = tuples(turn)
            for name, contender in work.items():
                rates[name].append(rate(partial(contender, fresh)))
        report(rates)
        counted = sum(j.memory_used() for j in joins.values()) / 2**20
        print(
            f"memory of the joins by their own count {counted:.0f} MiB, growth of the process {grown / 2**20:.0f} MiB"
        )
        print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
