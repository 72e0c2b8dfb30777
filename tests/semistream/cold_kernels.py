"""List the kernels that joins use and `warm_up` has not loaded; run this in a process of its own."""

import math
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from semistream import Between, Compare, ConditionMeshJoin, LoadShedder, ShedStore, UpfrontShedder
from semistream.joins import CHybridJoin, CMeshJoin, IndexNestedLoopJoin, SemiStreamJoin, TimedCHybridJoin
from semistream.relation import MemoryRelation, PageFile, Relation, write_page_file
from semistream.warm_up import warm_up

from tests.semistream import cases

Make = Callable[[int], SemiStreamJoin]
MEMORY = (cases.MEMORY, 10 * cases.MEMORY)  # the cache overflows; it does not
TYPES = {
    "uint64": pa.uint64(),
    "int8": pa.int8(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "large string": pa.large_string(),
    "binary": pa.binary(),
}


def cold_kernels() -> list[str]:
    """Return kernels, with the types of their arguments, that are compiled or loaded after `warm_up`."""
    warm_up()
    warm = _loaded()
    with tempfile.TemporaryDirectory() as directory:
        for stream, join in _joins(Path(directory)):
            join.preload()
            join.feed(stream.to_batches()[0].slice(0, 0))
            for batch in stream.to_batches(max_chunksize=61):
                join.feed(batch)
            join.finish()
    return sorted(_loaded() - warm)


def _loaded() -> set[str]:
    kernels = [
        value
        for name, module in list(sys.modules.items())
        if name.startswith("semistream")
        for value in vars(module).values()
        if hasattr(value, "overloads")
    ]
    return {f"{k.py_func.__module__}.{k.py_func.__name__}{types}" for k in kernels for types in k.overloads}


def _joins(directory: Path) -> Iterator[tuple[pa.Table, SemiStreamJoin]]:
    for number, kind in enumerate(cases.KEY_KINDS):
        table = cases.master(kind, cases.master_numbers())
        key = [name for name in table.column_names if name.startswith("id_")]
        on = [name.removeprefix("id_") for name in key]
        path = directory / str(number)
        write_page_file(path, table.schema, table.to_batches(), key, page_rows=8)
        numbers = [n for shape in ("null keys", "all absent") for n in cases.SHAPES[shape](np.random.default_rng(3))]
        stream = cases.stream(kind, numbers)
        for memory in MEMORY:
            in_memory = MemoryRelation(table, key, page_rows=8)
            yield from ((stream, make(memory)) for make in _makers(in_memory, stream.schema, on, output="pairs"))
            yield from ((stream, make(memory)) for make in _makers(PageFile(path), stream.schema, on, how="left"))
            yield stream, CHybridJoin(PageFile(path), stream.schema, on, memory, how="left", single_rows_below=math.inf)
            yield from (
                (stream, join) for join in _with_repeats(directory / f"repeats {number}", table, stream, on, memory)
            )
            uncached = PageFile(path, uncached=True)
            yield stream, CHybridJoin(uncached, stream.schema, on, 10 * memory, how="left")
        yield from ((stream, join) for join in _shedding(directory / f"shed {number}", PageFile(path), stream, on))
    for name, kind_of_key in TYPES.items():
        yield _of_type(directory / name, kind_of_key)


def _with_repeats(
    path: Path, table: pa.Table, stream: pa.Table, on: list[str], memory: int
) -> Iterator[SemiStreamJoin]:
    twice = pa.concat_tables([table, table]).combine_chunks()
    key = [f"id_{name}" for name in on]
    write_page_file(path, twice.schema, twice.to_batches(), key, page_rows=8)
    for relation in (MemoryRelation(twice, key, page_rows=8), PageFile(path)):
        for algorithm in (CMeshJoin, IndexNestedLoopJoin):
            yield algorithm(relation, stream.schema, on, 2 * memory, how="left")


def _shedding(directory: Path, relation: Relation, stream: pa.Table, on: list[str]) -> Iterator[SemiStreamJoin]:
    for kind in (LoadShedder, UpfrontShedder):
        store = ShedStore(directory / kind.__name__, stream.schema)
        store.add(stream.to_batches()[0])
        join = CHybridJoin(relation, stream.schema, on, 30_000, shedder=kind(store))
        join.step()
        join.shed_all()
        yield join
    timed = TimedCHybridJoin(relation, stream.schema, on, 30_000)
    timed.limit(0, LoadShedder(ShedStore(directory / "timed", stream.schema)).shed_portion)
    yield timed


def _of_type(path: Path, kind: pa.DataType) -> tuple[pa.Table, SemiStreamJoin]:
    """Make a stream and a join whose key has a type."""
    numbers = pa.array(range(50), pa.int32())
    as_text = pa.types.is_large_string(kind) or pa.types.is_binary(kind)
    keys = numbers.cast(pa.string() if as_text else pa.int32() if pa.types.is_date(kind) else pa.int64()).cast(kind)
    table = pa.table({"id": keys, "price": pa.array(range(50), pa.float32())})
    write_page_file(path, table.schema, table.to_batches(), ["id"], page_rows=8)
    stream = pa.table({"key": keys, "amount": pa.array(range(50), pa.decimal128(20, 2))})
    return stream, CHybridJoin(PageFile(path), stream.schema, "key", cases.MEMORY, single_rows_below=math.inf)


def _makers(relation: Relation, stream: pa.Schema, on: list[str], **options: Any) -> Iterator[Make]:  # noqa: ANN401
    for algorithm in cases.JOINS:
        yield partial(algorithm, relation, stream, on, **options)
    if pa.types.is_integer(stream.field("a").type) and len(on) == 1:
        for condition in (Between("id_a", "id_a"), Compare("<", "id_a")):
            yield partial(ConditionMeshJoin, relation, stream, on, condition=condition, **options)
