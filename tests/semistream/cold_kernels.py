"""Lists the kernels that joins use and `warm_up` has not loaded. Imported by a process of its own."""

import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from semistream.joins import CHybridJoin, SemiStreamJoin
from semistream.relation import MemoryRelation, PageFile, Relation, write_page_file
from semistream.warm_up import warm_up

from semistream import Between, Compare, ConditionMeshJoin, LoadShedder, OrderedMeshJoin, ShedStore
from tests.semistream import cases

Make = Callable[[int], SemiStreamJoin]
MEMORY = (cases.MEMORY, 10 * cases.MEMORY)  # with a cache that overflows, and with one that does not


def cold_kernels() -> list[str]:
    """Name kernels and the types of arguments that came after `warm_up`."""
    warm_up()
    warm = _loaded()
    with tempfile.TemporaryDirectory() as directory:
        for stream, join in _joins(Path(directory)):
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
        store = ShedStore(directory / f"shed {number}", stream.schema)
        store.add(stream.to_batches()[0])
        shedding = CHybridJoin(PageFile(path), stream.schema, on, 30_000, shedder=LoadShedder(store))
        shedding.step()
        shedding.shed_all()
        yield stream, shedding


def _makers(relation: Relation, stream: pa.Schema, on: list[str], **options: Any) -> Iterator[Make]:  # noqa: ANN401
    algorithms: list[type[SemiStreamJoin]] = [*cases.JOINS, OrderedMeshJoin]
    for algorithm in algorithms:
        yield partial(algorithm, relation, stream, on, **options)
    if pa.types.is_integer(stream.field("a").type) and len(on) == 1:
        for condition in (Between("id_a", "id_a"), Compare("<", "id_a")):
            yield partial(ConditionMeshJoin, relation, stream, on, condition=condition, **options)
