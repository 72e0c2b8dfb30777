"""Rows of R that are read one by one, where few tuples wait for each page."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from semistream.joins import CHybridJoin, HybridJoin, XHybridJoin
from semistream.keys import Fingerprint, fingerprint
from semistream.relation import MemoryRelation, Page, PageFile, Relation, write_page_file

from tests.naive import multiset
from tests.semistream import cases

JOINS = [HybridJoin, XHybridJoin, CHybridJoin]
PAGE_ROWS = 8
SOMETIMES, ALWAYS = 4, 1e9  # `single_rows_below`
TYPES = [
    pa.int8(), pa.uint16(), pa.int32(), pa.float64(), pa.date32(), pa.timestamp("us", "UTC"), pa.bool_(),
    pa.decimal128(30, 2), pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(2),
]  # fmt: skip


def _relation(kind: str, folder: Path | None, hashed: Fingerprint = fingerprint) -> Relation:
    """Build R as a page file in a folder, or in memory."""
    table = cases.master(kind, cases.master_numbers())
    key = [name for name in table.column_names if name.startswith("id_")]
    if folder is None:
        return MemoryRelation(table, key, page_rows=PAGE_ROWS, fingerprint=hashed)
    write_page_file(folder / "r", table.schema, table.to_batches(), key, page_rows=PAGE_ROWS)
    return PageFile(folder / "r")


def _joined(join: HybridJoin, stream: pa.Table) -> list[pa.RecordBatch]:
    out: list[pa.RecordBatch] = []
    for batch in stream.to_batches(max_chunksize=61):
        out += join.feed(batch)
    return out + join.finish()


@pytest.mark.parametrize("in_file", [False, True])
@pytest.mark.parametrize("shape", cases.SHAPES)
@pytest.mark.parametrize("kind", cases.KEY_KINDS)
@pytest.mark.parametrize("algorithm", JOINS)
def test_equals_a_nested_loop(
    algorithm: type[HybridJoin],
    kind: str,
    shape: str,
    in_file: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    """The output is the oracle's, whether all rows of a file or some in memory are read one by one."""
    below = ALWAYS if in_file else SOMETIMES
    relation = _relation(kind, tmp_path if in_file else None)
    stream = cases.stream(kind, cases.SHAPES[shape](np.random.default_rng(3)))
    on = [name.removeprefix("id_") for name in relation.key]
    join = algorithm(relation, stream.schema, on, cases.MEMORY, how="left", single_rows_below=below)
    assert multiset(_joined(join, stream)) == cases.expected(kind, shape, 3, "left")


@pytest.mark.parametrize("algorithm", JOINS)
def test_is_exact_when_fingerprints_collide(algorithm: type[HybridJoin]) -> None:
    """With fingerprints of three values, a key's first row in the index is rarely its own."""
    relation = _relation("string", None, lambda columns: fingerprint(columns) % 3)
    stream = cases.stream("string", cases.SHAPES["null keys"](np.random.default_rng(6)))
    join = algorithm(relation, stream.schema, "a", 2 * cases.MEMORY, how="left", single_rows_below=ALWAYS)
    assert multiset(_joined(join, stream)) == cases.expected("string", "null keys", 6, "left")
    assert relation.counters.rows_read


def test_pairs_name_the_rows_that_match(tmp_path: Path) -> None:
    """A single row has its position in R."""
    relation = _relation("int64", tmp_path)
    numbers = cases.SHAPES["uniform"](np.random.default_rng(9))
    stream = cases.stream("int64", numbers)
    join = HybridJoin(relation, stream.schema, "a", cases.MEMORY, output="pairs", single_rows_below=ALWAYS)
    position = {number: i for i, number in enumerate(cases.master_numbers())}
    pairs = [pair for out in _joined(join, stream) for pair in zip(*(part.tolist() for part in out), strict=True)]
    assert sorted(pairs) == [(i, position[number]) for i, number in enumerate(numbers) if number in position]
    assert relation.counters.rows_read


def test_reads_pages_while_many_tuples_wait_for_each_and_rows_when_few_do() -> None:
    """A page that serves `single_rows_below` tuples is read whole; the rest of the queue costs single rows."""
    table = pa.table({"id": np.arange(4000), "value": np.arange(4000)})
    busy, quiet = np.tile(np.arange(100), 20), np.arange(100, 4000, 100)  # one page of 100 rows, and 39 of one tuple
    for keys, pages, rows in ((busy, 1, 0), (quiet, 0, 39), (np.concatenate([quiet, busy]), 2, 38)):
        relation = MemoryRelation(table, ["id"], page_rows=100)
        stream = pa.table({"key": keys})
        join = HybridJoin(relation, stream.schema, "key", 400_000, single_rows_below=50)
        joined = sum(len(batch) for batch in join.feed(stream.to_batches()[0]) + join.finish())
        counters = relation.counters
        assert (joined, counters.pages_read, counters.rows_read) == (len(keys), pages, rows)


def test_a_single_row_is_a_seek_of_its_own() -> None:
    """The counters let a modelled disk charge for single rows, and only for their bytes."""
    table = pa.table({"id": np.arange(1000), "value": np.arange(1000)})
    relation = MemoryRelation(table, ["id"], page_rows=100)
    page = relation.read_rows(np.array([5, 905, 7]), np.array([5, 905, 7]), ["value"], 1000)
    assert page.rows.column("value").to_pylist() == [5, 905, 7]
    assert page.identify(np.array([2, 0])).tolist() == [7, 5]
    assert (relation.counters.rows_read, relation.counters.seeks, relation.counters.bytes_read) == (3, 3, 24)
    assert relation.counters.pages_read == 0


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_every_type_of_column_is_read_as_arrow_reads_it(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Single rows have the values of `take`, with and without nulls, in any order and repeated."""
    count = data.draw(st.integers(1, 60))
    numbers = [
        data.draw(st.one_of(st.none(), st.integers(0, 99))) if data.draw(st.booleans()) else 7 for _ in range(count)
    ]
    columns = {str(kind): _values(numbers, kind) for kind in TYPES}
    table = pa.table({"id": pa.array(range(count), pa.int64()), **columns})
    path = tmp_path_factory.mktemp("r") / "r"
    write_page_file(path, table.schema, table.to_batches(), ["id"], page_rows=PAGE_ROWS)
    positions = np.array(data.draw(st.lists(st.integers(0, count - 1), max_size=40)), dtype=np.int64)
    page = PageFile(path).read_rows(positions, positions, table.column_names, 10**6)
    page.rows.validate(full=True)
    assert pa.Table.from_batches([page.rows]) == table.take(pa.array(positions)).combine_chunks()


def _values(numbers: list[int | None], kind: pa.DataType) -> pa.Array:
    """Make a column of a type from numbers below 100."""
    if pa.types.is_boolean(kind):
        return pa.array([None if n is None else n % 2 == 0 for n in numbers], kind)
    if pa.types.is_fixed_size_binary(kind) and not pa.types.is_decimal(kind):
        return pa.array([None if n is None else f"{n:02}".encode() for n in numbers], kind)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array([None if n is None else b"x" * n for n in numbers], kind)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.array([None if n is None else "é" * n for n in numbers], kind)
    wide = pa.array(numbers, pa.int32() if pa.types.is_date(kind) else pa.int64())
    return wide.cast(pa.decimal128(19, 0)).cast(kind) if pa.types.is_decimal(kind) else wide.cast(kind)


def test_a_damaged_page_is_found_when_one_of_its_rows_is_read(tmp_path: Path) -> None:
    """The first use of a page compares all of it with its checksum, also for a single row."""
    relation = _relation("int64", tmp_path)
    content = bytearray((tmp_path / "r").read_bytes())
    content[content.index(b"name ")] ^= 1
    (tmp_path / "r").write_bytes(content)
    relation = PageFile(tmp_path / "r")
    with pytest.raises(ValueError, match=r"page \d+ of .* must match its checksum: build the file again"):
        relation.read_rows(np.arange(len(cases.master_numbers())), np.arange(cases.MASTER_ROWS), ["price"], 1000)


def test_only_whole_pages_can_be_read_without_the_page_cache(tmp_path: Path) -> None:
    """A relation that reads no single rows refuses the option, with what to do."""
    _relation("int64", tmp_path)
    stream = cases.stream("int64", [1])
    with pytest.raises(
        ValueError, match="single_rows_below must be 0 for a relation that reads whole pages only, got 5"
    ):
        HybridJoin(PageFile(tmp_path / "r", uncached=True), stream.schema, "a", cases.MEMORY, single_rows_below=5)


def test_columns_without_a_place_of_their_own_are_read_with_their_page(tmp_path: Path) -> None:
    """A file with a list column has no single rows."""
    table = pa.table({"id": [1, 2], "tags": [["a"], ["b", "c"]]})
    write_page_file(tmp_path / "r", table.schema, table.to_batches(), ["id"], page_rows=PAGE_ROWS)
    assert not PageFile(tmp_path / "r").reads_rows


def test_few_large_rows_are_read_at_once(tmp_path: Path) -> None:
    """Strings of single rows take no more than the disk buffer, and each row is read once for all of its tuples."""
    sizes = [200_000 if number % 40 == 7 else 10 for number in range(400)]
    table = pa.table({"id": np.arange(400), "text": ["x" * size for size in sizes]})
    write_page_file(tmp_path / "r", table.schema, table.to_batches(), ["id"], page_rows=40)
    relation = PageFile(tmp_path / "r")
    stream = pa.table({"key": np.tile(np.arange(400), 5)})
    join = HybridJoin(relation, stream.schema, "key", 4_000_000, single_rows_below=ALWAYS)
    read: list[int] = []
    original = join.disk_buffer.read_rows

    def read_rows(positions: np.ndarray, keys: np.ndarray) -> Page:
        page = original(positions, keys)
        read.append(page.rows.nbytes)
        return page

    join.disk_buffer.read_rows = read_rows  # type: ignore[method-assign]
    joined = _joined(join, stream)
    assert sum(len(batch) for batch in joined) == 2000
    assert all(len(text) == sizes[key] for b in joined for key, text in zip(*b.to_pydict().values(), strict=True))
    assert max(read) <= join.disk_buffer.nbytes
    assert sum(read) < 1.1 * table.nbytes


def test_the_oldest_tuple_is_read_however_many_large_rows_come_after_it(tmp_path: Path) -> None:
    """When few rows fit at once, younger tuples with smaller keys do not hold an old one back."""
    table = pa.table({"id": np.arange(400), "text": ["x" * (20_000 if n % 10 == 9 else 1) for n in range(400)]})
    write_page_file(tmp_path / "r", table.schema, table.to_batches(), ["id"], page_rows=10)
    join = HybridJoin(
        PageFile(tmp_path / "r"), pa.schema([("key", pa.int64())]), "key", 400_000, single_rows_below=ALWAYS
    )
    large = [399, *range(9, 200, 10)]
    join.offer(pa.RecordBatch.from_arrays([pa.array(large)], schema=join.stream))
    first = [key for batch in join.step() for key in batch["key"].to_pylist()]
    assert 399 in first
    assert len(first) < len(large)


@pytest.mark.parametrize("below", [-1, float("nan")])
def test_a_bound_that_is_no_number_of_tuples_is_refused(below: float) -> None:
    """The error names the parameter and the rule."""
    stream = cases.stream("int64", [1])
    with pytest.raises(ValueError, match="single_rows_below must be a number of at least 0, got"):
        HybridJoin(_relation("int64", None), stream.schema, "a", cases.MEMORY, single_rows_below=below)


def test_a_file_whose_rows_are_not_read_one_by_one_takes_no_memory_for_them(tmp_path: Path) -> None:
    """Where the values of rows are is noted when single rows are read, for the pages that have them."""
    _relation("int64", tmp_path)
    opened = PageFile(tmp_path / "r")
    opened.read_page(0)
    assert opened._rows is None  # noqa: SLF001 - nothing else shows it
