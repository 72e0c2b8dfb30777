"""Joins whose relation repeats keys equal the nested loop; a front stage has all rows of a key, or none."""

import gc
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from semistream.gathering import MOST_ROWS as MOST_GATHERED
from semistream.joins import CMeshJoin, IndexNestedLoopJoin, SemiStreamJoin
from semistream.keys import Fingerprint, fingerprint
from semistream.memory_split import Shares
from semistream.relation import MemoryRelation, PageFile, write_page_file
from semistream.relation.key_index import MOST_ROWS as MOST_INDEXED

from tests.naive import equal_keys, multiset, nested_loop_join
from tests.semistream import cases

ACCEPT_REPEATS = [CMeshJoin, IndexNestedLoopJoin]
REFUSE_REPEATS = [join for join in cases.JOINS if join.unique_key]
MEMORY = 60_000
How = Literal["inner", "left"]
LARGE_FRONT_STAGE = Shares(front_stage=0.5)


def _same_three(columns: Any) -> np.ndarray:  # noqa: ANN401 - the key columns
    few: np.ndarray = fingerprint(columns) % 3
    return few


def _check(
    algorithm: type[SemiStreamJoin],
    table: pa.Table,
    stream: pa.Table,
    how: How = "left",
    hashed: Fingerprint = fingerprint,
    page_rows: int = 8,
) -> SemiStreamJoin:
    """Compare a join with the oracle; return it."""
    key = [name for name in table.column_names if name.startswith("id_")]
    on = [name.removeprefix("id_") for name in key]
    relation = MemoryRelation(table, key, page_rows=page_rows, fingerprint=hashed)
    join = algorithm(relation, stream.schema, on, MEMORY, how=how, shares=LARGE_FRONT_STAGE)
    out = [row for batch in stream.to_batches(max_chunksize=61) for row in join.feed(batch)] + join.finish()
    assert multiset(out) == nested_loop_join(stream, table, equal_keys(on, key), cases.COLUMNS, outer=how == "left")
    return join


def _repeated(kind: str, rng: np.random.Generator, most: int = 6) -> pa.Table:
    """Build R in no order; its keys have 1 to `most` rows each."""
    numbers = np.repeat(cases.master_numbers(), rng.integers(1, most + 1, cases.MASTER_ROWS))
    return cases.master(kind, rng.permutation(numbers).tolist())


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("shape", cases.SHAPES)
@pytest.mark.parametrize("kind", cases.KEY_KINDS)
@pytest.mark.parametrize("algorithm", ACCEPT_REPEATS)
def test_equals_a_nested_loop(algorithm: type[SemiStreamJoin], kind: str, shape: str, how: How) -> None:
    """Each stream tuple is output once for each row of its key, for all kinds of keys and streams."""
    rng = np.random.default_rng(3)
    _check(algorithm, _repeated(kind, rng), cases.stream(kind, cases.SHAPES[shape](rng)), how)


@pytest.mark.parametrize("kind", ["string", "two columns"])
@pytest.mark.parametrize("algorithm", ACCEPT_REPEATS)
def test_is_exact_when_fingerprints_collide(algorithm: type[SemiStreamJoin], kind: str) -> None:
    """With fingerprints of three values each has rows of many keys; only those of the tuple's key match."""
    rng = np.random.default_rng(4)
    few = rng.permutation(np.repeat(cases.master_numbers()[:12], 3)).tolist()
    stream = cases.stream(kind, cases.SHAPES["null keys"](rng) * 3)
    join = _check(algorithm, cases.master(kind, few), stream, "left", _same_three)
    assert join.front_stage.hits > 0 or algorithm is IndexNestedLoopJoin


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    rows=st.lists(st.integers(0, 12), max_size=60),
    tuples=st.lists(st.one_of(st.none(), st.integers(0, 14)), max_size=250),
    page_rows=st.integers(1, 20),
    kind=st.sampled_from(["int64", "string"]),
)
@pytest.mark.parametrize("algorithm", ACCEPT_REPEATS)
def test_any_relation_and_stream(
    algorithm: type[SemiStreamJoin], rows: list[int], tuples: list[Any], page_rows: int, kind: str
) -> None:
    """The output is the oracle's, however many rows a key has and wherever they lie."""
    _check(algorithm, cases.master(kind, rows), cases.stream(kind, tuples), page_rows=page_rows)


@pytest.mark.parametrize("sizes", [[1], [2], [8], [8, 3, 1], [2, 7, 5, 60]])
@pytest.mark.parametrize("scattered", [True, False])
def test_partitions_of_any_size_lose_no_row_of_a_key(sizes: list[int], scattered: bool) -> None:  # noqa: FBT001 - a case
    """Keys are gathered from page to page, however many pages a partition has, also when that changes.

    The front stage goes on matching after each change: no key that is being gathered blocks those behind it.
    """
    rng = np.random.default_rng(9)
    numbers = np.repeat(cases.master_numbers(), 4)
    table = cases.master("int64", (rng.permutation(numbers) if scattered else numbers).tolist())
    relation = MemoryRelation(table, ["id_a"], page_rows=8)
    join = CMeshJoin(
        relation, cases.stream("int64", []).schema, "a", MEMORY, how="left",
        shares=LARGE_FRONT_STAGE, partition_pages=sizes[0],
    )  # fmt: skip
    frequent = rng.permutation(cases.master_numbers()).reshape(4, 15)
    for size, hot in zip(sizes, frequent, strict=False):
        join.read_partitions_of(size)
        keys = np.where(rng.random(900) < 0.9, rng.choice(hot, 900), rng.integers(0, cases.DOMAIN, 900)).tolist()
        stream, hits = cases.stream("int64", keys), join.front_stage.hits
        out = [row for batch in stream.to_batches(max_chunksize=61) for row in join.feed(batch)]
        expected = nested_loop_join(stream, table, equal_keys(["a"], ["id_a"]), cases.COLUMNS, outer=True)
        assert multiset(out + join.finish()) == expected
        assert join.front_stage.hits > hits + 100


def test_the_front_stage_answers_with_every_row_of_a_key() -> None:
    """After a cycle over R the front stage matches a hot key, whose rows lie on all pages, without another page."""
    table = cases.master("int64", [7, *range(20, 27)] * 5)
    stream = cases.stream("int64", [7] * 200)
    join = _check(CMeshJoin, table, stream)
    hits, pages = join.front_stage.hits, join.relation.counters.pages_read
    more = cases.stream("int64", [7] * 50)
    out = [row for batch in more.to_batches() for row in join.feed(batch)]
    assert sum(batch.num_rows for batch in out) == 50 * 5
    assert join.front_stage.hits == hits + 50
    assert join.relation.counters.pages_read == pages
    slots = np.flatnonzero(join.front_stage.cache.shown(np.arange(join.front_stage.cache.slots)))
    assert join.front_stage.recorder.frequency[slots].min() >= 50, "its rows are overwritten together, so all are hot"


def test_a_key_is_not_shown_before_each_page_was_read() -> None:
    """While one page of a cycle is missing, tuples of a hot key still wait."""
    table = cases.master("int64", [7, *range(20, 27)] * 5)  # the key has a row on each of five pages
    relation = MemoryRelation(table, ["id_a"], page_rows=8)
    one = cases.stream("int64", [7])
    join = CMeshJoin(relation, one.schema, "a", MEMORY, shares=LARGE_FRONT_STAGE)
    shown = []
    for _ in range(relation.pages + 2):
        join.offer(one.to_batches()[0])
        join.step()
        shown.append(join.front_stage.hits)
    assert shown == [0] * (relation.pages + 1) + [1]


@pytest.mark.parametrize("extra", [0, 1])
def test_a_key_with_too_many_rows_stays_out(extra: int) -> None:
    """A key with more rows than a hit may put out is joined in the window, with all of them."""
    rows = [7] * (MOST_GATHERED + extra) + [8, 9] * 4
    relation = MemoryRelation(cases.master("int64", rows), ["id_a"], page_rows=16)
    one = cases.stream("int64", [7])
    join = CMeshJoin(relation, one.schema, "a", 4 * MEMORY, shares=LARGE_FRONT_STAGE)
    assert join.split.hidden_slots > len(rows)
    out = []
    for _ in range(20):
        join.offer(one.to_batches()[0])
        out += join.step()
    assert sum(batch.num_rows for batch in out + join.finish()) == 20 * (MOST_GATHERED + extra)
    assert (join.front_stage.hits == 0) == (extra == 1)


@pytest.mark.parametrize(("memory", "front_stage", "least"), [(40_000, 0.15, 600), (100_000, 0.3, 1200)])
def test_follows_hot_keys_that_change_and_drops_old_ones_whole(memory: int, front_stage: float, least: int) -> None:
    """The front stage fills up and follows the stream, also when it has more strings than room for them.

    It keeps its room for hidden rows and its memory, and the output stays exact.
    """
    rng = np.random.default_rng(5)
    numbers = rng.permutation(np.repeat(np.arange(200), rng.integers(1, 6, 200))).tolist()
    table = cases.master("string", numbers)
    relation = MemoryRelation(table, ["id_a"], page_rows=16)
    join = CMeshJoin(relation, cases.stream("string", []).schema, "a", memory, shares=Shares(front_stage=front_stage))
    used = join.memory_used()
    for hot in (0, 50, 100, 150):
        keys = np.where(rng.random(3000) < 0.9, hot + rng.integers(0, 5, 3000), rng.integers(0, 200, 3000)).tolist()
        stream, hits = cases.stream("string", keys), join.front_stage.hits
        out = [row for batch in stream.to_batches(max_chunksize=61) for row in join.feed(batch)] + join.finish()
        assert multiset(out) == nested_loop_join(stream, table, equal_keys(["a"], ["id_a"]), cases.COLUMNS, outer=False)
        assert join.front_stage.hits - hits > least
        assert join.front_stage.cache.count <= join.split.cache_slots - join.split.hidden_slots
        assert join.memory_used() == used


def test_a_full_front_stage_keeps_its_room_for_hidden_rows() -> None:
    """Each row that the stream comes to meet overwrites one; the front stage stays full, and no fuller."""
    rng = np.random.default_rng(8)
    numbers = rng.permutation(np.repeat(np.arange(200), rng.integers(1, 6, 200))).tolist()
    relation = MemoryRelation(cases.master("int64", numbers), ["id_a"], page_rows=16)
    join = CMeshJoin(relation, cases.stream("int64", []).schema, "a", 60_000, columns=["price"])
    most, counts = join.split.cache_slots - join.split.hidden_slots, []
    skewed = np.power(200, rng.random(12_000)).astype(int) - 1
    for batch in cases.stream("int64", skewed.tolist()).to_batches(max_chunksize=100):
        join.feed(batch)
        counts.append(join.front_stage.cache.count)
    assert 0.9 * most < max(counts) <= most


def test_slots_are_never_lost() -> None:
    """After any stream each slot of H_R is free, hidden or met, and counted as that."""
    rng = np.random.default_rng(6)
    table = _repeated("string", rng, most=12)
    join = _check(CMeshJoin, table, cases.stream("string", cases.SHAPES["skewed"](rng) * 6))
    cache, gathering = join.front_stage.cache, join._gathering  # type: ignore[attr-defined]  # noqa: SLF001
    free = len(cache.free_slots(cache.slots))
    shown = np.count_nonzero(cache.shown(np.arange(cache.slots)))
    assert shown == cache.count > 0
    assert cache.slots - free - shown == gathering._hidden  # noqa: SLF001
    gathering.forget()
    assert len(cache.free_slots(cache.slots)) == cache.slots
    assert cache.rows.free_blocks == cache.rows.heap_blocks


@pytest.mark.parametrize("rows", [MOST_INDEXED - 1, MOST_INDEXED, MOST_INDEXED + 30])
def test_inlj_joins_rows_that_the_index_leaves_out(tmp_path: Path, rows: int) -> None:
    """A key with more rows than the index keeps is joined with all of them, also from a page file."""
    table = cases.master("int64", [5, 6, *[7] * rows, 8, 9])
    stream = cases.stream("int64", [7, 8, 10])
    _check(IndexNestedLoopJoin, table, stream, page_rows=4)
    write_page_file(tmp_path / "r", table.schema, table.to_batches(), ["id_a"], page_rows=4)
    join = IndexNestedLoopJoin(PageFile(tmp_path / "r"), stream.schema, "a", MEMORY, output="pairs")
    out = join.feed(stream.to_batches()[0]) + join.finish()
    pairs = sorted(pair for tuples, found in out for pair in zip(tuples.tolist(), found.tolist(), strict=True))
    assert pairs == [*((0, 2 + row) for row in range(rows)), (1, 2 + rows)]


def test_inlj_reads_only_pages_that_have_the_key() -> None:
    """A key on two of six pages costs one look-up and two pages."""
    table = cases.master("int64", [1, 2, 7, 4, 5, 6, 7, 8, 9, 10, 11, 12])
    join = _check(IndexNestedLoopJoin, table, cases.stream("int64", [7]), page_rows=2)
    assert (join.relation.counters.pages_read, join.relation.counters.look_ups) == (2, 1)


@pytest.mark.parametrize("algorithm", REFUSE_REPEATS)
def test_the_other_joins_refuse_repeated_keys(algorithm: type[SemiStreamJoin]) -> None:
    """They name the key, and the joins that accept it."""
    relation = MemoryRelation(cases.master("int64", [1, 1]), ["id_a"])
    with pytest.raises(ValueError, match=r"key \['id_a'\] must be unique for .*: use MeshJoin, CMeshJoin or Index"):
        algorithm(relation, cases.stream("int64", []).schema, "a", MEMORY)


def test_preloading_repeated_keys_does_nothing() -> None:
    """The first rows of a key may not be all, so a join starts with an empty front stage."""
    relation = MemoryRelation(cases.master("int64", [1, 1, 2]), ["id_a"], page_rows=1)
    join = CMeshJoin(relation, cases.stream("int64", []).schema, "a", MEMORY)
    join.preload()
    assert join.front_stage.cache.count == relation.counters.pages_read == 0


@settings(max_examples=15, deadline=None, derandomize=True)
@given(memory=st.integers(25_000, 150_000), front_stage=st.floats(0, 0.5), tuples=st.lists(st.integers(0, 99)))
def test_memory_is_counted_and_does_not_grow(memory: int, front_stage: float, tuples: list[int]) -> None:
    """`memory_used` is within the budget, counts every array of the gathering, and stays."""
    relation = MemoryRelation(_repeated("string", np.random.default_rng(7)), ["id_a"], page_rows=8)
    stream = cases.stream("string", tuples)
    join = CMeshJoin(relation, stream.schema, "a", memory, shares=Shares(front_stage=front_stage))
    gathering = join._gathering  # noqa: SLF001
    arrays = [array for array in gc.get_referents(gathering.__dict__) if isinstance(array, np.ndarray)]
    used = join.memory_used()
    assert used <= memory
    assert sum(array.nbytes for array in arrays) == gathering.nbytes  # type: ignore[union-attr]
    for batch in stream.to_batches(max_chunksize=20):
        join.feed(batch)
    join.finish()
    assert join.memory_used() == used
