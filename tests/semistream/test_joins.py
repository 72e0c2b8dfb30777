"""Every join gives exactly the rows of a nested loop."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from semistream.joins import CHybridJoin, HybridJoin, SemiStreamJoin
from semistream.keys import Fingerprint, fingerprint
from semistream.relation import MemoryRelation

from tests.naive import equal_keys, multiset, nested_loop_join
from tests.semistream import cases

Batches = list[pa.RecordBatch]


def _join(join: SemiStreamJoin, stream: pa.Table, batch_rows: int = 61) -> Batches:
    out: Batches = []
    for batch in stream.to_batches(max_chunksize=batch_rows):
        out += join.feed(batch)
    return out + join.finish()


def _relation(kind: str, hashed: Fingerprint = fingerprint) -> MemoryRelation:
    table = cases.master(kind, cases.master_numbers())
    key = [name for name in table.column_names if name.startswith("id_")]
    return MemoryRelation(table, key, page_rows=8, fingerprint=hashed)


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("shape", cases.SHAPES)
@pytest.mark.parametrize("kind", cases.KEY_KINDS)
@pytest.mark.parametrize("algorithm", cases.JOINS)
def test_equals_a_nested_loop(algorithm: type[SemiStreamJoin], kind: str, shape: str, how: str) -> None:
    """The output is the oracle's as a multiset, for each join, kind of key and shape of stream."""
    relation = _relation(kind)
    stream = cases.stream(kind, cases.SHAPES[shape](np.random.default_rng(3)))
    on = [name.removeprefix("id_") for name in relation.key]
    join = algorithm(relation, stream.schema, on, cases.MEMORY, how=how)  # type: ignore[arg-type]
    assert multiset(_join(join, stream)) == cases.expected(kind, shape, 3, how)


@pytest.mark.parametrize("kind", cases.KEY_KINDS)
@pytest.mark.parametrize("algorithm", cases.JOINS)
def test_equals_a_nested_loop_when_it_was_preloaded(algorithm: type[SemiStreamJoin], kind: str) -> None:
    """The output stays the same when the front stage starts with the first rows of R."""
    relation = _relation(kind)
    stream = cases.stream(kind, cases.SHAPES["null keys"](np.random.default_rng(8)))
    on = [name.removeprefix("id_") for name in relation.key]
    join = algorithm(relation, stream.schema, on, cases.MEMORY, how="left")
    join.preload()
    assert multiset(_join(join, stream)) == cases.expected(kind, "null keys", 8, "left")


@pytest.mark.parametrize("algorithm", cases.JOINS)
def test_takes_one_tuple_at_a_time(algorithm: type[SemiStreamJoin]) -> None:
    """Batches of a single tuple give the same rows as large ones."""
    relation = _relation("int64")
    stream = cases.stream("int64", cases.SHAPES["skewed"](np.random.default_rng(4)))
    join = algorithm(relation, stream.schema, "a", cases.MEMORY)
    assert multiset(_join(join, stream, batch_rows=1)) == cases.expected("int64", "skewed", 4, "inner")


@pytest.mark.parametrize("algorithm", cases.JOINS)
def test_leaves_nothing_waiting_when_the_stream_pauses(algorithm: type[SemiStreamJoin]) -> None:
    """After `finish` all tuples so far are joined, and the join can be fed again."""
    relation = _relation("string")
    table = cases.master("string", cases.master_numbers())
    stream = cases.stream("string", cases.SHAPES["null keys"](np.random.default_rng(5)))
    join = algorithm(relation, stream.schema, "a", cases.MEMORY, how="left")
    out: Batches = []
    for batch in stream.to_batches(max_chunksize=100):
        out += join.feed(batch)
        out += join.finish()
        assert join.pending == 0
        fed = stream.slice(0, sum(b.num_rows for b in out))
        expected = nested_loop_join(fed, table, equal_keys(["a"], ["id_a"]), cases.COLUMNS, outer=True)
        assert multiset(out) == expected


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("kind", ["string", "two columns"])
@pytest.mark.parametrize("algorithm", cases.JOINS)
def test_is_exact_when_fingerprints_collide(algorithm: type[SemiStreamJoin], kind: str, how: str) -> None:
    """With fingerprints of three values most keys collide; the output stays the same."""
    relation = _relation(kind, lambda columns: fingerprint(columns) % 3)
    stream = cases.stream(kind, cases.SHAPES["null keys"](np.random.default_rng(6)))
    on = [name.removeprefix("id_") for name in relation.key]
    join = algorithm(relation, stream.schema, on, 2 * cases.MEMORY, how=how)  # type: ignore[arg-type]
    assert relation.unique
    assert multiset(_join(join, stream)) == cases.expected(kind, "null keys", 6, how)


@pytest.mark.parametrize("algorithm", cases.JOINS)
def test_an_empty_relation_matches_nothing(algorithm: type[SemiStreamJoin]) -> None:
    """Without master data every tuple is output as unmatched."""
    relation = MemoryRelation(cases.master("int64", []), ["id_a"])
    stream = cases.stream("int64", cases.SHAPES["uniform"](np.random.default_rng(8)))
    join = algorithm(relation, stream.schema, "a", cases.MEMORY, how="left")
    expected = nested_loop_join(
        stream, cases.master("int64", []), equal_keys(["a"], ["id_a"]), cases.COLUMNS, outer=True
    )
    assert multiset(_join(join, stream)) == expected


@pytest.mark.parametrize("algorithm", cases.JOINS)
def test_pairs_name_the_rows_that_match(algorithm: type[SemiStreamJoin]) -> None:
    """A pair has a stream tuple's number and its master row's position, or -1 for none."""
    numbers = cases.SHAPES["null keys"](np.random.default_rng(9))
    relation = _relation("int32")
    stream = cases.stream("int32", numbers)
    join = algorithm(relation, stream.schema, "a", cases.MEMORY, how="left", output="pairs")
    pairs = itertools.chain.from_iterable(zip(t.tolist(), p.tolist(), strict=True) for t, p in _join(join, stream))
    position = {number: i for i, number in enumerate(cases.master_numbers())}
    assert sorted(pairs) == [(i, position.get(number, -1)) for i, number in enumerate(numbers)]


@pytest.mark.parametrize(
    "values",
    [pa.array(["a"]).dictionary_encode(), pa.array([[1]]), pa.array([[1, 2]], pa.list_(pa.int8(), 2)), pa.nulls(1)],
    ids=lambda values: str(values.type),
)
def test_columns_that_cannot_be_moved_are_refused(values: pa.Array) -> None:
    """A column that is neither a string nor plain bytes of one width is an error of the constructor."""
    stream = pa.table({"a": [1], "odd": values})
    with pytest.raises(ValueError, match=r"column type must be string or binary, or .*: cast or drop"):
        CHybridJoin(_relation("int64"), stream.schema, "a", cases.MEMORY)
    relation = MemoryRelation(pa.table({"id": [1], "odd": values}), ["id"])
    with pytest.raises(ValueError, match=r"column type must be string or binary, or .*: cast or drop"):
        CHybridJoin(relation, cases.stream("int64", [1]).schema, "a", cases.MEMORY)


def test_an_empty_batch_may_be_offered() -> None:
    """An empty batch is accepted and takes no room in the stream buffer."""
    stream = cases.stream("string", cases.master_numbers())
    join = CHybridJoin(_relation("string"), stream.schema, "a", cases.MEMORY)
    join.offer(stream.to_batches()[0].slice(0, 0))
    long = pa.RecordBatch.from_pylist([{"a": "1", "n": 0, "note": "x" * 5000}], schema=stream.schema)
    assert long.nbytes > join.stream_buffer.capacity
    assert join.stream_buffer.has_room(long)


def test_feeds_after_offering() -> None:
    """`feed` joins what was offered before, even if that fills the buffer."""
    stream = cases.stream("string", cases.SHAPES["skewed"](np.random.default_rng(3)))
    join = CHybridJoin(_relation("string"), stream.schema, "a", cases.MEMORY)
    offered = join.stream_buffer.pieces(stream.to_batches()[0])[0]
    join.offer(offered)
    rest = stream.slice(offered.num_rows).to_batches()[0]
    assert not join.stream_buffer.has_room(rest)
    assert multiset(join.feed(rest) + join.finish()) == cases.expected("string", "skewed", 3, "inner")


@pytest.mark.parametrize("algorithm", cases.JOINS)
def test_a_tuple_too_large_to_wait_is_refused_before_anything_is_taken(algorithm: type[SemiStreamJoin]) -> None:
    """A batch with a tuple larger than the heap is an error; the join continues without that batch."""
    stream = cases.stream("string", cases.SHAPES["skewed"](np.random.default_rng(3)))
    join = algorithm(_relation("string"), stream.schema, "a", cases.MEMORY)
    out = join.feed(stream.slice(0, 100).to_batches()[0])
    note = "x" * (32 * join.waiting.rows.heap_blocks + 1)
    batch = pa.RecordBatch.from_pylist([{"a": "1", "n": 0}, {"a": "1", "n": 1, "note": note}], schema=stream.schema)
    before = join.stream_buffer.arrived
    for take in (join.feed, join.offer):
        with pytest.raises(ValueError, match=r"a stream tuple's strings must fit into .* blocks of memory, they take"):
            take(batch)
    assert join.stream_buffer.arrived == before
    out += join.feed(stream.slice(100).to_batches()[0]) + join.finish()
    assert multiset(out) == cases.expected("string", "skewed", 3, "inner")


def test_a_flood_of_unknown_keys_reads_no_page() -> None:
    """The index dismisses unknown keys; the front stage dismisses those that it remembers."""
    relation = _relation("int64")
    numbers = [1000 + i % 10 for i in range(2000)]
    stream = cases.stream("int64", numbers)
    join = CHybridJoin(relation, stream.schema, "a", 4 * cases.MEMORY, how="left")
    _join(join, stream)
    assert relation.counters.pages_read == 0
    assert join.front_stage.known_absent > 1000


def test_one_page_serves_all_tuples_that_wait_for_it() -> None:
    """HYBRIDJOIN reads each of R's pages once when all tuples fit into H_S."""
    relation = _relation("int64")
    stream = cases.stream("int64", master_order := cases.master_numbers() * 5)
    join = HybridJoin(relation, stream.schema, "a", 200_000)
    out = _join(join, stream)
    assert sum(batch.num_rows for batch in out) == len(master_order)
    assert relation.counters.pages_read == relation.pages
