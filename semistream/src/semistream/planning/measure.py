"""Measure what this machine takes for the steps of the cost models, and keep that with its date."""

import json
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
from semistream.joins import CHybridJoin, HybridJoin, MeshJoin, SemiStreamJoin
from semistream.memory_split import Shares
from semistream.planning.machine import DEVICES, MEASURED_BYTES, Machine
from semistream.relation import MemoryRelation, PageFile, write_page_file

__all__ = ["Measured", "measure", "read_machine"]

_ROWS, _TUPLES, _BATCH = 200_000, 1_000_000, 32_768
_SMALL_PAGE, _LARGE_PAGE, _SCANS = 500, 8_000, 3
_COLUMNS = 14
_FILE_ROWS, _SINGLE_ROWS = MEASURED_BYTES // (8 * (_COLUMNS + 1)), 200_000
_MEMORY, _MOST_CACHED = 64 * 2**20, 0.9
_TURNS = 3  # the quickest counts: others were disturbed
_STREAM = pa.schema([pa.field("key", pa.int64(), nullable=False), pa.field("number", pa.int64(), nullable=False)])


@dataclass(frozen=True)
class Measured:
    """The constants of a machine's processor.

    Attributes:
        date: when they were measured.
        look_up: seconds to look up a row of R in H_S.
        handle: seconds for a stream tuple that meets its row in memory, without the values of that row.
        output: seconds to output one of these values.
        wait: seconds more for a tuple that waits.
        page: seconds for a page beside its rows.
        row: seconds to find a single row of a mapped file that is in memory.
        value: seconds to read a value of a row that is found there.
    """

    date: str
    look_up: float
    handle: float
    output: float
    wait: float
    page: float
    row: float
    value: float

    def write(self, file: Path) -> None:
        """Write them as JSON."""
        file.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")


def read_machine(file: Path, device: str) -> Machine:
    """Return a machine with constants that `Measured.write` wrote, and one of the devices."""
    try:
        found = Measured(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(
            f"{file} must have a machine's constants, got: {error}. Make it: python -m semistream measure --file {file}"
        ) from None
    return Machine(
        disk=DEVICES[device],
        look_up=found.look_up,
        handle=found.handle,
        output=found.output,
        wait=found.wait,
        page=found.page,
        row=found.row,
        value=found.value,
    )


def measure() -> Measured:
    """Measure on one core, in processor time; it takes some seconds, and 300 MB for a file.

    A cache that holds all of R gives `handle` and `output`. Scans of R for one waiting tuple, with small and with large
    pages, give `look_up` and `page`. HYBRIDJOIN without a cache, less these, gives `wait`.
    """
    columns = {f"column_{number}": np.arange(_ROWS) for number in range(_COLUMNS)}
    table = pa.table({"id": np.arange(_ROWS), **columns})
    small, large = (MemoryRelation(table, ["id"], rows) for rows in (_SMALL_PAGE, _LARGE_PAGE))
    in_small, in_large = (_scan_seconds(relation) for relation in (small, large))
    page = max((in_small - in_large) / (small.pages - large.pages), 0.0)
    look_up = max((in_large - large.pages * page) / _ROWS, 0.0)

    handle = _cached_seconds(large, "pairs")
    output = max(_cached_seconds(large, "rows") - handle, 0.0) / _COLUMNS

    waiting = HybridJoin(large, _STREAM, "key", _MEMORY, columns=[])
    reads = large.counters.pages_read
    seconds = _feed_seconds(waiting, _ROWS)
    pages = (large.counters.pages_read - reads) / (_TURNS + 1)
    wait = max((seconds - pages * (page + _LARGE_PAGE * look_up)) / _TUPLES - handle, 0.0)
    return Measured(time.strftime("%Y-%m-%d"), look_up, handle, output, wait, page, *_single_row_seconds())


def _cached_seconds(relation: MemoryRelation, output: Literal["rows", "pairs"]) -> float:
    """Return the processor time for a stream tuple while all of R is in memory."""
    join = CHybridJoin(relation, _STREAM, "key", _MEMORY, output=output, shares=Shares(front_stage=_MOST_CACHED))
    join.preload()
    return _feed_seconds(join, _ROWS) / _TUPLES


def _single_row_seconds() -> tuple[float, float]:
    """Return the processor time to find a row of a file larger than the processor's caches, and to read a value."""
    names = [f"column_{number}" for number in range(_COLUMNS)]
    rows = pa.RecordBatch.from_arrays([pa.array(np.arange(_ROWS))] * _COLUMNS, names)
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), *rows.schema])
    parts = (
        pa.RecordBatch.from_arrays([pa.array(np.arange(first, first + _ROWS)), *rows.columns], schema=schema)
        for first in range(0, _FILE_ROWS, _ROWS)
    )
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "r"
        write_page_file(path, schema, parts, ["id"], _LARGE_PAGE)
        with PageFile(path) as relation:
            relation.verify()
            find, read = [], []
            for turn in range(_TURNS + 1):
                keys = np.random.default_rng(turn).integers(0, _FILE_ROWS, _SINGLE_ROWS)
                began = time.process_time()
                positions = relation.find(keys)
                found = time.process_time()
                relation.read_rows(positions, keys, names, MEASURED_BYTES)
                find.append(found - began)
                read.append(time.process_time() - found)
    return min(find[1:]) / _SINGLE_ROWS, min(read[1:]) / (_SINGLE_ROWS * _COLUMNS)


def _scan_seconds(relation: MemoryRelation) -> float:
    """Return the processor time for one scan of R while a single tuple waits."""
    join = MeshJoin(relation, _STREAM, "key", _MEMORY, columns=[])
    times = []
    for _ in range(_SCANS + 1):  # the first one loads kernels
        join.offer(_batch(np.zeros(1, dtype=np.int64)))
        began = time.process_time()
        for _ in range(relation.pages):
            join.step()
        times.append(time.process_time() - began)
    return min(times[1:])


def _feed_seconds(join: SemiStreamJoin, keys: int) -> float:
    """Return the processor time for a million tuples with uniform keys."""
    drawn = np.random.default_rng(1).integers(0, keys, _TUPLES)
    batches = [_batch(drawn[start : start + _BATCH]) for start in range(0, _TUPLES, _BATCH)]
    times = []
    for _ in range(_TURNS + 1):
        began = time.process_time()
        for batch in batches:
            join.feed(batch)
        times.append(time.process_time() - began)
    return min(times[1:])


def _batch(keys: np.ndarray) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(keys), pa.array(keys)], schema=_STREAM)
