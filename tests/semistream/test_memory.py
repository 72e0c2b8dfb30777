"""A join never uses more memory than it reports."""

import gc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from semistream.joins import SemiStreamJoin
from semistream.memory_split import Shares
from semistream.relation import MemoryRelation

from tests.semistream import cases


def _array_bytes(root: object) -> int:
    """Count the bytes of all numpy arrays of a join, without its relation and without Arrow batches."""
    seen: set[int] = set()
    total = 0
    todo = [root]
    while todo:
        item = todo.pop()
        if id(item) in seen or isinstance(item, type) or item.__class__.__module__.startswith("pyarrow"):
            continue
        seen.add(id(item))
        if isinstance(item, np.ndarray):
            total += item.nbytes if item.base is None else 0
        elif isinstance(item, dict | list | tuple) or item.__class__.__module__.startswith("semistream"):
            todo += [x for x in gc.get_referents(item) if not isinstance(x, MemoryRelation)]
    return total


def _relation() -> MemoryRelation:
    return MemoryRelation(cases.master("string", cases.master_numbers()), ["id_a"], page_rows=8)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    memory=st.integers(20_000, 200_000),
    shares=st.builds(Shares, st.floats(0, 0.3), st.floats(0, 0.5), st.floats(0, 0.1), st.integers(8, 100)),
    numbers=st.lists(st.one_of(st.none(), st.integers(0, cases.DOMAIN + 20)), max_size=150),
    batch_rows=st.integers(1, 100),
)
@pytest.mark.parametrize("algorithm", cases.JOINS)
def test_never_uses_more_than_its_budget(
    algorithm: type[SemiStreamJoin], memory: int, shares: Shares, numbers: list[Any], batch_rows: int
) -> None:
    """`memory_used` stays within the budget and does not change; no array grows or is added."""
    stream = cases.stream("string", numbers)
    join = algorithm(_relation(), stream.schema, "a", memory, how="left", shares=shares)
    used, arrays = join.memory_used(), _array_bytes(join)
    reserved = join.stream_buffer.capacity + join.disk_buffer.nbytes
    assert used <= memory
    assert arrays <= used - reserved
    for batch in stream.to_batches(max_chunksize=batch_rows):
        join.feed(batch)
        assert _array_bytes(join) == arrays
        assert join.memory_used() == used
        assert join.stream_buffer.held_bytes == 0
    join.finish()
    assert _array_bytes(join) == arrays


@pytest.mark.parametrize("algorithm", cases.JOINS)
def test_all_arrays_are_counted(algorithm: type[SemiStreamJoin]) -> None:
    """Without the reserved buffers, `memory_used` is the size of all arrays, byte for byte."""
    join = algorithm(_relation(), cases.stream("string", []).schema, "a", 50_000)
    reserved = join.stream_buffer.capacity + join.disk_buffer.nbytes + join.split.kept_bytes
    kept = sum(page.keys.nbytes for page in getattr(join, "_kept", []))
    assert _array_bytes(join) == join.memory_used() - reserved + kept


@pytest.mark.parametrize("algorithm", cases.JOINS)
def test_too_small_a_budget_names_the_least(algorithm: type[SemiStreamJoin]) -> None:
    """The least memory that the error names is enough, and one byte less is not."""
    relation, schema = _relation(), cases.stream("string", []).schema
    with pytest.raises(ValueError, match=r"memory must be at least \d+ bytes .*, got 10: give it more") as error:
        algorithm(relation, schema, "a", 10)
    least = int(str(error.value).split()[5])
    with pytest.raises(ValueError, match=f"at least {least} bytes"):
        algorithm(relation, schema, "a", least - 1)
    join = algorithm(relation, schema, "a", least)
    assert join.memory_used() <= least
    join.feed(pa.RecordBatch.from_pylist([{"a": "7", "n": 1, "note": None}], schema=schema))
    assert join.finish() is not None
