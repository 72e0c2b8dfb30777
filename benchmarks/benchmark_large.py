"""How fast a planned join is when R is fifty times as large and its memory stays the same.

Run it with `python -m benchmarks.benchmark_large`; it takes some minutes. R has 2 and 100 million rows of 120 bytes in
mapped page files in the order of frequency, 0.3 and 14 GB, which it makes and removes; both should fit into the page
cache. The stream is Zipfian with exponent 1, and the join has 24 MB and one core. The planner chooses the division of
the memory, and when rows are read one by one. The figure is the median of the turns, the noise band their spread, in
processor time. `--rows` makes the large R smaller.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
from semistream.relation import PageFile, write_page_file

from benchmarks.benchmark_joins import PAGE_ROWS, Kind, plan, planned_join, rows
from benchmarks.benchmark_papers import ROW_BYTES, Setting, stream

SMALL, LARGE = 2_000_000, 100_000_000
JOIN = "chybridjoin"
MEMORY = 24_000_000
TUPLES, WARMING, TURNS = 2_000_000, 4, 9
FILE_BYTES = 145  # for a row, with its entry in the index
AT_ONCE = 200_000
KINDS: dict[Kind, str] = {"pairs": "keys with row positions", "rows": "full rows"}


def write(path: Path, count: int) -> None:
    """Write R."""
    pieces = (rows(first, min(AT_ONCE, count - first)) for first in range(0, count, AT_ONCE))
    write_page_file(path, rows(0, 0).schema, pieces, ["id"], PAGE_ROWS)


def rates(relation: PageFile, kind: Kind) -> list[float]:
    """Return the join's rates, turn by turn, in millions of tuples a second."""
    setting = Setting(rows=relation.row_count)
    schema = next(stream(setting, 1.0, 1, 0)).schema
    join = planned_join(JOIN, relation, schema, MEMORY, kind)
    join.preload()
    found = []
    for turn in range(WARMING + TURNS):
        batches = list(stream(setting, 1.0, TUPLES, turn))
        start = time.process_time()
        for batch in batches:
            join.feed(batch)
        found.append(TUPLES / (time.process_time() - start) / 1e6)
    return found[WARMING:]


def main() -> None:
    """Measure both sizes, and print how many times slower the large one is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=LARGE, help="of the large R (default: %(default)s)")
    count = parser.parse_args().rows
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory() as directory:
        free, needed = shutil.disk_usage(directory).free, (count + SMALL) * FILE_BYTES
        if free < needed:
            sys.exit(
                f"benchmark_large: {directory} must have {needed / 1e9:.0f} GB free for R, it has {free / 1e9:.0f}: "
                f"set TMPDIR to a larger disk, or give --rows"
            )
        found: dict[tuple[int, Kind], list[float]] = {}
        for size in (SMALL, count):
            path = Path(directory) / str(size)
            start = time.monotonic()
            write(path, size)
            print(f"R of {size:,} rows is written in {time.monotonic() - start:.0f} s", flush=True)
            with PageFile(path) as relation:
                relation.verify()
                for kind in KINDS:
                    found[size, kind] = rates(relation, kind)
        for kind, name in KINDS.items():
            small, large = found[SMALL, kind], found[count, kind]
            for size, measured in ((SMALL, small), (count, large)):
                band = f"({min(measured):.2f} to {max(measured):.2f})"
                said = f"planned {plan(JOIN, size, MEMORY, kind).rate / 1e6:.2f}"
                print(f"{name}, R of {size:,} rows: {statistics.median(measured):.2f} M/s {band}, {said}")
            slower = statistics.median(small) / statistics.median(large)
            print(f"{name}: {slower:.1f} times slower with {count // SMALL} times the rows ({ROW_BYTES} bytes each)")


if __name__ == "__main__":
    main()
