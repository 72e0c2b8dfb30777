"""MESHJOIN joins many to many, by ranges and inequalities, and in stream order (MESHJOIN 2007, section 3.3)."""

import operator
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from semistream.condition import Between, Compare, Condition
from semistream.joins import ConditionMeshJoin, MeshJoin, OrderedMeshJoin, RMeshJoin, SemiStreamJoin
from semistream.memory_split import Shares
from semistream.relation import MemoryRelation

from tests.naive import equal_keys, multiset, nested_loop_join
from tests.semistream import cases

MEMORY = 40_000
VALUES = st.one_of(st.none(), st.integers(-9, 9))
How = Literal["inner", "left"]


def _run(join: SemiStreamJoin, stream: pa.Table) -> list[pa.RecordBatch]:
    out = [row for batch in stream.to_batches(max_chunksize=17) for row in join.feed(batch)]
    return out + join.finish()


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("kind", cases.KEY_KINDS)
@pytest.mark.parametrize("algorithm", [MeshJoin, RMeshJoin, OrderedMeshJoin])
def test_joins_many_to_many(algorithm: type[MeshJoin], kind: str, how: How) -> None:
    """Each stream tuple is output once for each master row with its key."""
    rng = np.random.default_rng(11)
    table = cases.master(kind, rng.integers(0, 30, 50).tolist())
    stream = cases.stream(kind, rng.integers(0, 40, 60).tolist())
    relation = MemoryRelation(table, [n for n in table.column_names if n.startswith("id_")], page_rows=8)
    on = [name.removeprefix("id_") for name in relation.key]
    out = _run(algorithm(relation, stream.schema, on, 3 * MEMORY, how=how), stream)
    expected = nested_loop_join(stream, table, equal_keys(on, relation.key), cases.COLUMNS, outer=how == "left")
    assert multiset(out) == expected
    assert not relation.unique


def _tables(kind: pa.DataType, lows: list[Any], values: list[Any]) -> tuple[pa.Table, pa.Table]:
    scale = 0.5 if pa.types.is_floating(kind) else 1
    scaled = [[None if v is None else v * scale for v in column] for column in (lows, values)]
    high = [None if v is None else v + abs(v) * scale for v in scaled[0]]
    master = pa.table(
        {"id": pa.array(range(len(lows)), pa.int64()), "low": pa.array(scaled[0], kind), "high": pa.array(high, kind)}
    )
    return master, pa.table({"n": pa.array(range(len(values)), pa.int64()), "at": pa.array(scaled[1], kind)})


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    lows=st.lists(VALUES, max_size=20),
    values=st.lists(VALUES, max_size=40),
    kind=st.sampled_from([pa.int32(), pa.int64(), pa.float64()]),
    sign=st.sampled_from(["<", "<=", ">", ">=", "between"]),
    how=st.sampled_from(["inner", "left"]),
)
def test_joins_by_ranges_and_inequalities(
    lows: list[Any], values: list[Any], kind: pa.DataType, sign: str, how: How
) -> None:
    """A stream tuple is output once for each master row whose interval contains its value; null matches nothing."""
    master, stream = _tables(kind, lows, values)
    compare = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
    condition: Condition = Between("low", "high") if sign == "between" else Compare(sign, "low")  # type: ignore[arg-type]

    def matches(s: dict[str, Any], r: dict[str, Any]) -> bool:
        if s["at"] is None or r["low"] is None or r["high"] is None:
            return False
        return bool(r["low"] <= s["at"] <= r["high"] if sign == "between" else compare[sign](s["at"], r["low"]))

    relation = MemoryRelation(master, ["id"], page_rows=3)
    join = ConditionMeshJoin(relation, stream.schema, "at", MEMORY, condition=condition, how=how)
    assert join.memory_used() <= MEMORY
    expected = nested_loop_join(stream, master, matches, master.column_names, outer=how == "left")
    assert multiset(_run(join, stream)) == expected


def test_the_limits_of_integers_are_compared_rightly() -> None:
    """Comparisons with the least and the greatest integer are exact, for each of the four signs."""
    limits = [np.iinfo(np.int64).min, np.iinfo(np.int64).max, 0]
    master, stream = pa.table({"id": [0, 1, 2], "low": limits}), pa.table({"n": [0, 1, 2], "at": limits})
    for sign, compare in (("<", operator.lt), ("<=", operator.le), (">", operator.gt), (">=", operator.ge)):
        condition = Compare(sign, "low")  # type: ignore[arg-type]
        join = ConditionMeshJoin(MemoryRelation(master, ["id"]), stream.schema, "at", MEMORY, condition=condition)

        def matches(s: dict[str, Any], r: dict[str, Any], holds: Callable[[int, int], bool] = compare) -> bool:
            return holds(s["at"], r["low"])

        expected = nested_loop_join(stream, master, matches, ["id", "low"], outer=False)
        assert multiset(_run(join, stream)) == expected


def test_values_that_cannot_be_compared_are_refused() -> None:
    """A condition between an integer and a float column is refused; the author has to add a cast."""
    master, stream = pa.table({"id": [1], "low": [0.5]}), pa.table({"at": [1]})
    with pytest.raises(ValueError, match="must be of one type, got int64 of the stream and double of low"):
        ConditionMeshJoin(MemoryRelation(master, ["id"]), stream.schema, "at", MEMORY, condition=Compare("<", "low"))


def _windows(join: SemiStreamJoin, iterations: int) -> tuple[list[int], list[int]]:
    """Keep the stream buffer full of absent keys; list after each iteration how many wait and how many have expired."""
    waiting, expired = [], []
    tuples = cases.stream("int64", [cases.DOMAIN] * join.stream_buffer.chunk_rows).to_batches()[0]
    for _ in range(iterations):
        for piece in join.stream_buffer.pieces(tuples):
            if join.stream_buffer.has_room(piece):
                join.offer(piece)
        expired.append(sum(batch.num_rows for batch in join.step()))
        waiting.append(join.pending)
    return waiting, expired


@pytest.mark.parametrize(("page_rows", "memory"), [(1, 8_000), (1, MEMORY), (7, MEMORY)])
def test_an_r_meshjoin_that_starts_fast_fills_its_window_over_a_cycle_of_r(page_rows: int, memory: int) -> None:
    """When more tuples than h_S come at once, each iteration reads a page's share of h_S, and expires as many later."""
    relation = MemoryRelation(cases.master("int64", cases.master_numbers()), ["id_a"], page_rows=page_rows)
    half = Shares(stream_buffer=0.5)
    join = RMeshJoin(relation, cases.stream("int64", []).schema, "a", memory, how="left", shares=half)
    k, slots = relation.pages, join.waiting.slots
    waiting, expired = _windows(join, 4 * k)
    largest_chunk = -(-slots // k)
    read = np.diff([0, *(np.array(waiting) + np.cumsum(expired))])
    assert read.max() == max(expired) == largest_chunk
    assert sum(expired[2 * k : 3 * k]) == sum(expired[3 * k :]) == slots, "the window uses all of h_S"


def test_r_meshjoin_needs_fewer_slots_than_r_has_pages() -> None:
    """With h_S smaller than k a tuple still meets every page, and `finish` ends."""
    table, stream = cases.master("int64", cases.master_numbers()), cases.stream("int64", cases.master_numbers() * 2)
    join = RMeshJoin(MemoryRelation(table, ["id_a"], page_rows=1), stream.schema, "a", 8_000, how="left")
    assert join.waiting.slots < join.relation.pages
    expected = nested_loop_join(stream, table, equal_keys(["a"], ["id_a"]), cases.COLUMNS, outer=True)
    join.offer(join.stream_buffer.pieces(stream.to_batches()[0])[0])
    out = join.finish() + _run(join, stream.slice(join.stream_buffer.arrived))
    assert multiset(out) == expected


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("output", ["rows", "pairs"])
def test_output_is_in_the_order_of_the_stream(how: How, output: Literal["rows", "pairs"]) -> None:
    """Output is in stream order, including unmatched tuples and tuples without a key."""
    numbers = cases.SHAPES["null keys"](np.random.default_rng(12))
    table, stream = cases.master("string", cases.master_numbers()), cases.stream("string", numbers)
    relation = MemoryRelation(table, ["id_a"], page_rows=8)
    join = OrderedMeshJoin(relation, stream.schema, "a", MEMORY, how=how, output=output)
    out: list[Any] = _run(join, stream)
    order = [n for b in out for n in (b.column("n").to_pylist() if output == "rows" else b[0].tolist())]
    known = set(cases.master_numbers())
    assert order == [i for i, number in enumerate(numbers) if how == "left" or number in known]
    assert join.memory_used() <= MEMORY


def test_more_ordered_results_than_fit_are_an_error() -> None:
    """More results than there is room for are an error; none is lost."""
    table = cases.master("int64", [1] * 500)
    stream = cases.stream("int64", [1] * 100)
    join = OrderedMeshJoin(MemoryRelation(table, ["id_a"]), stream.schema, "a", MEMORY)
    with pytest.raises(MemoryError, match="give the join more memory, or use MeshJoin"):
        _run(join, stream)
