"""Loads the joins' kernels ahead of use, so that the first batch of a stream does not wait for them."""

import math
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pyarrow as pa
from semistream.condition import Compare
from semistream.joins import (
    CachedIndexNestedLoopJoin,
    CHybridJoin,
    CMeshJoin,
    ConditionMeshJoin,
    IndexNestedLoopJoin,
    OrderedMeshJoin,
    SemiStreamJoin,
)
from semistream.relation import MemoryRelation, PageFile, Relation, write_page_file

__all__ = ["warm_up"]

_MEMORY = 100_000
_LITTLE = 20_000  # so little memory that the front stage overflows


@cache  # once per process
def warm_up() -> None:
    """Load every kernel that a join uses from numba's cache, or compile it.

    Kernels are compiled for the types of their arguments. So this function joins a few tuples in each way that has its
    own kernels or types: with keys of integers, of strings and of both, with a page file and a relation in memory, and
    with keys that repeat.
    """
    once, twice = _rows(200), pa.concat_tables([_rows(100)] * 2)
    kinds = ((["long"], once), (["text"], once), (["long", "text"], once), (["long"], twice), (["text"], twice))
    for key, master in kinds:
        stream = pa.concat_tables([*[_rows(50)] * 4, _rows(200), _rows(1, first=1000)])
        stream = stream.rename_columns([f"s_{name}" for name in stream.column_names])
        on = [f"s_{name}" for name in key]
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "r"
            write_page_file(path, master.schema, master.to_batches(), key, page_rows=20)
            for relation in (PageFile(path), MemoryRelation(master, key, page_rows=20)):
                for join in _joins(relation, stream.schema, on):
                    for batch in stream.to_batches(max_chunksize=50):
                        join.feed(batch)
                    join.finish()


def _joins(relation: Relation, stream: pa.Schema, on: list[str]) -> Iterator[SemiStreamJoin]:
    if not relation.unique:
        yield CMeshJoin(relation, stream, on, 2 * _MEMORY, how="left")
        yield IndexNestedLoopJoin(relation, stream, on, _MEMORY, how="left")
        return
    for algorithm in (CHybridJoin, CMeshJoin, CachedIndexNestedLoopJoin, OrderedMeshJoin):
        yield algorithm(relation, stream, on, _MEMORY, how="left")
    yield CHybridJoin(relation, stream, on, _LITTLE, how="left", columns=["byte"])
    yield CHybridJoin(relation, stream, on, _MEMORY, how="left", single_rows_below=math.inf)
    if len(on) == 1 and relation.codec.exact:
        yield ConditionMeshJoin(relation, stream, on, _MEMORY, condition=Compare("<", relation.key[0]))


def _rows(count: int, first: int = 0) -> pa.Table:
    """Make rows with a column of each width; the narrow columns repeat their values."""
    numbers = list(range(first, first + count))
    small = [number % 100 for number in numbers]
    return pa.table(
        {
            "text": [str(n) for n in numbers],
            "long": numbers,
            "int": pa.array(numbers, pa.int32()),
            "short": pa.array(small, pa.int16()),
            "byte": pa.array(small, pa.int8()),
            "long text": pa.array([str(n) for n in numbers], pa.large_string()),
            "wide": pa.array(numbers, pa.decimal128(38, 0)),
        }
    )


if __name__ == "__main__":
    warm_up()
