"""A join reads partitions of any number of pages, which can change while it runs, and stays exact in bounded memory."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from semistream.condition import Between
from semistream.joins import (
    CachedIndexNestedLoopJoin,
    ConditionMeshJoin,
    HybridJoin,
    IndexNestedLoopJoin,
    MeshJoin,
    RMeshJoin,
    SemiStreamJoin,
    XHybridJoin,
)
from semistream.memory_split import Shares
from semistream.relation import MemoryRelation

from tests.naive import equal_keys, multiset, nested_loop_join
from tests.semistream import cases

PAGE_ROWS = 4
PAGES = cases.MASTER_ROWS // PAGE_ROWS
MOST_STEPS = 5_000
SIZES = [1, 2, 7, PAGES, PAGES + 5]  # 7 does not divide the pages of R
LONE = [IndexNestedLoopJoin, CachedIndexNestedLoopJoin]
PARTITIONED = [algorithm for algorithm in cases.JOINS if algorithm not in LONE]
FROM_KEY = [algorithm for algorithm in PARTITIONED if issubclass(algorithm, HybridJoin)]
How = Literal["inner", "left"]


def _relation(kind: str = "int64", numbers: list[int] | None = None) -> MemoryRelation:
    table = cases.master(kind, cases.master_numbers() if numbers is None else numbers)
    return MemoryRelation(table, [name for name in table.column_names if name.startswith("id_")], PAGE_ROWS)


def _feed(join: SemiStreamJoin, stream: pa.Table) -> list[Any]:
    return [row for batch in stream.to_batches(max_chunksize=61) for row in join.feed(batch)] + join.finish()


@pytest.mark.parametrize("pages", SIZES)
@pytest.mark.parametrize("kind", ["int64", "two columns"])
@pytest.mark.parametrize("algorithm", PARTITIONED)
def test_equals_a_nested_loop_with_partitions_of_any_size(
    algorithm: type[SemiStreamJoin], kind: str, pages: int
) -> None:
    """The output is the oracle's for partitions of one page, of several, and of more than R has."""
    relation = _relation(kind)
    stream = cases.stream(kind, cases.SHAPES["null keys"](np.random.default_rng(3)))
    on = [name.removeprefix("id_") for name in relation.key]
    join = algorithm(relation, stream.schema, on, cases.MEMORY, how="left", partition_pages=pages)
    assert multiset(_feed(join, stream)) == cases.expected(kind, "null keys", 3, "left")


@pytest.mark.parametrize("pages", SIZES)
@pytest.mark.parametrize("algorithm", FROM_KEY)
def test_equals_a_nested_loop_with_partitions_that_start_at_the_key(algorithm: type[HybridJoin], pages: int) -> None:
    """The same where partitions overlap."""
    stream = cases.stream("string", cases.SHAPES["null keys"](np.random.default_rng(3)))
    join = algorithm(
        _relation("string"), stream.schema, "a", cases.MEMORY, how="left", partition_pages=pages, from_key=True
    )
    assert multiset(_feed(join, stream)) == cases.expected("string", "null keys", 3, "left")


def _run_changing(join: SemiStreamJoin, stream: pa.Table, sizes: list[int], portion: int) -> list[Any]:
    """Feed or step in turn, each time with partitions of another size."""
    out: list[Any] = []
    for turn, batch in enumerate(stream.to_batches(max_chunksize=portion)):
        join.read_partitions_of(sizes[0])
        out += join.feed(batch) if turn % 2 else []
        for piece in [] if turn % 2 else join.stream_buffer.pieces(batch):
            out += _stepped(join, lambda: not join.stream_buffer.has_room(piece))  # noqa: B023 - called at once
            join.offer(piece)
            out += join.step()
        sizes = sizes[1:] + sizes[:1]
    return out + _stepped(join, lambda: bool(join.pending or len(join.stream_buffer)), sizes)


def _stepped(join: SemiStreamJoin, wanted: Callable[[], bool], sizes: Sequence[int] = ()) -> list[Any]:
    """Step while it is wanted, with partitions of another size each time; a join that never ends is a failure."""
    out: list[Any] = []
    for turn in range(MOST_STEPS):
        if not wanted():
            return out
        if sizes:
            join.read_partitions_of(sizes[turn % len(sizes)])
        out += join.step()
    raise AssertionError(f"tuples still wait after {MOST_STEPS} iterations")


CHANGES = st.lists(st.integers(1, PAGES + 2), min_size=1, max_size=6)
NUMBERS = st.lists(st.one_of(st.none(), st.integers(0, cases.DOMAIN + 9)), max_size=150)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(numbers=NUMBERS, sizes=CHANGES, portion=st.integers(1, 70), from_key=st.booleans())
@pytest.mark.parametrize("algorithm", PARTITIONED)
def test_a_change_of_the_partitions_loses_and_doubles_nothing(
    algorithm: type[SemiStreamJoin],
    numbers: list[int | None],
    sizes: list[int],
    portion: int,
    from_key: bool,  # noqa: FBT001 - drawn
) -> None:
    """Whatever the size is from one iteration to the next, each tuple is joined once; memory does not change."""
    table, stream = cases.master("string", cases.master_numbers()), cases.stream("string", numbers)
    options: dict[str, Any] = {"from_key": from_key} if algorithm in FROM_KEY else {}
    join = algorithm(_relation("string"), stream.schema, "a", cases.MEMORY, how="left", **options)
    used = join.memory_used()
    expected = nested_loop_join(stream, table, equal_keys(["a"], ["id_a"]), cases.COLUMNS, outer=True)
    assert multiset(_run_changing(join, stream, sizes, portion)) == expected
    assert join.memory_used() == used <= cases.MEMORY


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    numbers=st.lists(st.integers(0, 40), max_size=100),
    keys=st.lists(st.integers(0, 30), max_size=60),
    sizes=CHANGES,
    portion=st.integers(1, 40),
    kind=st.sampled_from([MeshJoin, RMeshJoin, ConditionMeshJoin]),
)
def test_a_window_meets_each_page_once_while_partitions_change(
    numbers: list[int], keys: list[int], sizes: list[int], portion: int, kind: type[MeshJoin]
) -> None:
    """Many rows have the same key, so a page that a tuple meets twice or never changes the output."""
    stream = cases.stream("int64", numbers)
    options: dict[str, Any] = {"condition": Between("id_a", "id_a")} if kind is ConditionMeshJoin else {}
    relation = _relation(numbers=keys)
    join = kind(relation, stream.schema, "a", 40_000, how="left", columns=cases.COLUMNS, **options)
    expected = nested_loop_join(
        stream, cases.master("int64", keys), equal_keys(["a"], ["id_a"]), cases.COLUMNS, outer=True
    )
    assert multiset(_run_changing(join, stream, sizes, portion)) == expected


@pytest.mark.parametrize(("from_key", "pages"), [(False, range(4, 8)), (True, range(6, 10))])
def test_a_partition_is_read_with_one_seek(from_key: bool, pages: range) -> None:  # noqa: FBT001 - a case of the test
    """A waiting tuple of page 6 makes a join read the four pages of its partition, or those from its page on."""
    relation = _relation()
    key = cases.master_numbers()[6 * PAGE_ROWS]
    stream = cases.stream("int64", [key])
    join = HybridJoin(relation, stream.schema, "a", cases.MEMORY, partition_pages=4, from_key=from_key)
    assert join.disk_buffer.partition(6) == pages
    assert sum(batch.num_rows for batch in _feed(join, stream)) == 1
    assert (relation.counters.pages_read, relation.counters.seeks) == (4, 1)


def test_the_last_partition_of_r_ends_with_r() -> None:
    """Partitions of 7 of 15 pages: the last has one page, and one that starts at the key never goes beyond R."""
    disk_buffer = HybridJoin(_relation(), cases.stream("int64", []).schema, "a", cases.MEMORY).disk_buffer
    disk_buffer.partition_pages = 7
    assert disk_buffer.partitions == 3
    assert disk_buffer.partition(14) == range(14, 15)
    disk_buffer.from_key = True
    assert disk_buffer.partition(12) == range(12, 15)


def test_meshjoin_has_fewer_larger_chunks_with_larger_partitions() -> None:
    """With partitions of 7 pages MESHJOIN needs 3 iterations for 15 pages, and h_S / 3 tuples enter in each."""
    relation = _relation()
    stream = cases.stream("int64", [cases.DOMAIN] * 2000)
    join = MeshJoin(relation, stream.schema, "a", 60_000, how="left", partition_pages=7, shares=Shares(0.5))
    join.offer(join.stream_buffer.pieces(stream.combine_chunks().to_batches()[0])[0])
    assert len(join.stream_buffer) > join.waiting.slots
    waiting, expired = [], []
    for _ in range(3):
        expired.append(sum(batch.num_rows for batch in join.step()))
        waiting.append(join.pending)
    w = join.waiting.slots // 3
    assert (join.k, waiting, expired) == (3, [w, 2 * w, 2 * w], [0, 0, w])
    assert relation.counters.pages_read == PAGES


@pytest.mark.parametrize("algorithm", [*PARTITIONED, *LONE])
def test_partitions_without_pages_are_refused(algorithm: type[SemiStreamJoin]) -> None:
    """A partition has at least one page, in the constructor and later."""
    schema = cases.stream("int64", []).schema
    message = r"partition_pages must be (at least )?1.*, got 0: use"
    with pytest.raises(ValueError, match=message):
        algorithm(_relation(), schema, "a", cases.MEMORY, partition_pages=0)
    with pytest.raises(ValueError, match=message):
        algorithm(_relation(), schema, "a", cases.MEMORY).read_partitions_of(0)


@pytest.mark.parametrize("algorithm", LONE)
def test_index_nested_loop_joins_read_single_pages(algorithm: type[SemiStreamJoin]) -> None:
    """A partition of several pages would serve one tuple: it is refused with the joins that can use it."""
    schema = cases.stream("int64", []).schema
    with pytest.raises(ValueError, match=r"partition_pages must be 1 for .*, got 7: use HybridJoin"):
        algorithm(_relation(), schema, "a", cases.MEMORY, partition_pages=7)


def test_meshjoin_refuses_more_partitions_than_tuples_that_can_wait() -> None:
    """Chunks without tuples would let nothing in; the join goes on with the partitions that it had."""
    relation = MemoryRelation(cases.master("int64", cases.master_numbers()), ["id_a"], page_rows=1)
    stream = cases.stream("int64", cases.SHAPES["skewed"](np.random.default_rng(4)))
    join = MeshJoin(relation, stream.schema, "a", 7_000, partition_pages=30)
    assert join.waiting.slots < relation.pages
    least = -(-relation.pages // join.waiting.slots)
    with pytest.raises(ValueError, match=rf"partition_pages must be at least {least}, .*, got {least - 1}: use larger"):
        join.read_partitions_of(least - 1)
    join.read_partitions_of(least)
    assert multiset(_feed(join, stream)) == cases.expected("int64", "skewed", 4, "inner")


@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.5])
def test_the_kept_part_of_an_x_hybridjoin_is_as_many_rows_as_fit(share: float) -> None:
    """It ends within a page where its share ends: the first rows of R, and one more would not fit."""
    relation = MemoryRelation(cases.master("string", list(range(3000))), ["id_a"], 100)
    schema = cases.stream("string", []).schema
    join = XHybridJoin(relation, schema, "a", 100_000, shares=Shares(front_stage=share))
    kept = join._kept  # noqa: SLF001 - its size shows nowhere else
    first = [key for page in kept for key in page.rows["id_a"].to_pylist()]
    assert first == cases.key_columns("string", list(range(len(first))))["a"].to_pylist()
    sizes = [page.rows.nbytes + page.keys.nbytes for page in kept]
    assert sum(sizes) <= join.split.kept_bytes <= max(share * 100_000, 16 * join.disk_buffer.nbytes)
    last = relation.read_page(kept[-1].first // 100)
    more = last.rows.slice(0, len(kept[-1].keys) + 1)
    assert sum(sizes[:-1]) + more.nbytes + 8 * more.num_rows > join.split.kept_bytes
    assert len(first) % 100 != 0


def test_kept_rows_of_a_part_of_a_page_are_joined_before_a_page_is_read() -> None:
    """Tuples of the kept rows need no page; one of the same page's other rows does."""
    numbers = list(range(cases.MASTER_ROWS))
    relation = MemoryRelation(cases.master("int64", numbers), ["id_a"], page_rows=50)
    schema = cases.stream("int64", []).schema
    join = XHybridJoin(relation, schema, "a", 20_000, shares=Shares(front_stage=0.0))
    (kept,) = join._kept  # noqa: SLF001 - its size shows nowhere else
    assert 0 < len(kept.keys) < 50
    read = relation.counters.pages_read
    for key, pages in ((0, 0), (len(kept.keys) - 1, 0), (len(kept.keys), 1)):
        out = _feed(join, cases.stream("int64", [key]))
        assert [row["price"] for batch in out for row in batch.to_pylist()] == [None if key % 5 == 0 else key * 0.5]
        assert relation.counters.pages_read - read == pages


@pytest.mark.parametrize("kind", [MeshJoin, RMeshJoin])
def test_larger_partitions_are_read_once_the_chunks_of_smaller_ones_have_left(kind: type[MeshJoin]) -> None:
    """Tuples keep coming, and after a cycle of R each iteration reads five pages where it read one."""
    relation = _relation()
    join = kind(relation, cases.stream("int64", []).schema, "a", cases.MEMORY)
    tuples = cases.stream("int64", [cases.DOMAIN] * join.waiting.slots).to_batches()[0]
    pages = []
    for iteration in range(2 * PAGES + 12):
        if iteration == PAGES + 1:
            join.read_partitions_of(5)
        for piece in join.stream_buffer.pieces(tuples):
            if join.stream_buffer.has_room(piece):
                join.offer(piece)
        before = relation.counters.pages_read
        join.step()
        pages.append(relation.counters.pages_read - before)
    assert set(pages[: PAGES + 1]) == {1}
    assert set(pages[-9:]) == {5}
