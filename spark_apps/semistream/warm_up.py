"""Compiles every kernel, or loads it from the cache, so that no worker does so at its first batch."""

import tempfile
from pathlib import Path

import pyarrow as pa

from spark_apps.semistream.joins import CachedIndexNestedLoopJoin, CHybridJoin, CMeshJoin, OrderedMeshJoin
from spark_apps.semistream.relation import MemoryRelation, PageFile, write_page_file

_MEMORY = 100_000


def warm_up() -> None:
    """Join a few tuples with integer and with string keys, in every way that has kernels of its own."""
    numbers = list(range(200))
    small = [number % 100 for number in numbers]
    columns = {
        "text": [str(n) for n in numbers],
        "long": numbers,
        "int": pa.array(numbers, pa.int32()),
        "short": pa.array(small, pa.int16()),
        "byte": pa.array(small, pa.int8()),
        "wide": pa.array(numbers, pa.decimal128(38, 0)),
    }
    for key in ("long", "text"):
        master = pa.table({"key": columns[key], **columns})
        stream = pa.table({"on": [*columns[key][:50] * 4, columns[key][0] * 1000, None], "number": range(202)})
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "r"
            write_page_file(path, master.schema, master.to_batches(), ["key"], page_rows=20)
            for relation in (PageFile(path), MemoryRelation(master, ["key"], page_rows=20)):
                for algorithm in (CHybridJoin, CMeshJoin, CachedIndexNestedLoopJoin, OrderedMeshJoin):
                    join = algorithm(relation, stream.schema, "on", _MEMORY, how="left")
                    for batch in stream.to_batches(max_chunksize=50):
                        join.feed(batch)
                    join.finish()


if __name__ == "__main__":
    warm_up()
