"""A page file holds a complete relation of any size, or does not exist."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from semistream.joins import CHybridJoin, MeshJoin
from semistream.relation import Counters, MemoryRelation, PageFile, Relation, write_page_file
from semistream.relation.key_index import MOST_ROWS
from semistream.relation.page_file_format import Footer

from tests.naive import multiset
from tests.semistream import cases

PAGE_ROWS = 8


def _write(path: Path, kind: str, numbers: list[int], batch_rows: int = 13) -> pa.Table:
    table = cases.master(kind, numbers)
    key = [name for name in table.column_names if name.startswith("id_")]
    write_page_file(path, table.schema, table.to_batches(max_chunksize=batch_rows), key, PAGE_ROWS)
    return table


def _all_rows(relation: Relation) -> pa.Table:
    rows = [row for p in range(relation.pages) for row in relation.read_page(p).rows.to_pylist()]
    return pa.Table.from_pylist(rows, relation.schema)


@pytest.mark.parametrize("uncached", [False, True])
@pytest.mark.parametrize("kind", cases.KEY_KINDS)
def test_gives_back_every_row_in_order(tmp_path: Path, kind: str, uncached: bool) -> None:  # noqa: FBT001
    """Pages have the rows in the order of the source, whatever the size of its batches."""
    table = _write(tmp_path / "r", kind, cases.master_numbers())
    with PageFile(tmp_path / "r", uncached=uncached) as relation:
        assert relation.row_count == len(table)
        assert relation.unique
        assert _all_rows(relation).equals(table)


@pytest.mark.parametrize("kind", cases.KEY_KINDS)
def test_the_index_finds_the_page_of_every_key_and_of_no_other(tmp_path: Path, kind: str) -> None:
    """The index returns the right page for each key of R, and -1 for others."""
    numbers = cases.master_numbers()
    _write(tmp_path / "r", kind, numbers)
    relation = PageFile(tmp_path / "r")
    wanted = [*numbers, 1000, 1001]
    encoded, _ = relation.codec.encode(list(cases.key_columns(kind, wanted).values()))
    expected = [i // PAGE_ROWS for i in range(len(numbers))] + [-1, -1]
    assert relation.locate(encoded).tolist() == expected
    assert relation.candidates(int(encoded[20])) == [20 // PAGE_ROWS]
    assert relation.candidates(int(encoded[-1])) == []


@pytest.mark.parametrize("uncached", [False, True])
@pytest.mark.parametrize("kind", cases.KEY_KINDS)
def test_joins_as_a_relation_in_memory_does(tmp_path: Path, kind: str, uncached: bool) -> None:  # noqa: FBT001
    """A join over the file gives the oracle's rows."""
    _write(tmp_path / "r", kind, cases.master_numbers())
    relation = PageFile(tmp_path / "r", uncached=uncached)
    stream = cases.stream(kind, cases.SHAPES["skewed"](np.random.default_rng(3)))
    on = [name.removeprefix("id_") for name in relation.key]
    join = CHybridJoin(relation, stream.schema, on, 2 * cases.MEMORY)
    out = [row for batch in stream.to_batches(max_chunksize=50) for row in join.feed(batch)] + join.finish()
    assert multiset(out) == cases.expected(kind, "skewed", 3, "inner")


def test_counts_what_it_reads(tmp_path: Path) -> None:
    """Pages, bytes, seeks and look-ups are counted exactly; bytes are those of the pages in the file."""
    _write(tmp_path / "r", "int64", cases.master_numbers())
    relation = PageFile(tmp_path / "r")
    for page in (0, 1, 2, 5, 5, 6):
        relation.read_page(page)
    relation.locate(np.arange(4))
    relation.candidates(7)
    counted = relation.counters
    assert (counted.pages_read, counted.seeks, counted.look_ups) == (6, 3, 5)
    single = Counters()
    for page in (0, 1, 2, 5, 5, 6):
        fresh = PageFile(tmp_path / "r")
        fresh.read_page(page)
        single.bytes_read += fresh.counters.bytes_read
    assert counted.bytes_read == single.bytes_read > 0


def test_uncached_reads_count_whole_blocks_of_the_disk(tmp_path: Path) -> None:
    """A read past the page cache reads and counts whole blocks."""
    _write(tmp_path / "r", "int64", cases.master_numbers())
    with PageFile(tmp_path / "r", uncached=True) as relation:
        relation.read_page(0)
        assert relation.counters.bytes_read == 4096


def test_repeated_keys_are_noticed(tmp_path: Path) -> None:
    """The file knows whether its keys are unique."""
    for kind in cases.KEY_KINDS:
        _write(tmp_path / "twice", kind, [1, 2, 3, 2])
        assert not PageFile(tmp_path / "twice").unique
    stream = cases.stream("int64", [1])
    with pytest.raises(ValueError, match="must be unique for CHybridJoin"):
        CHybridJoin(MemoryRelation(cases.master("int64", [1, 1]), ["id_a"]), stream.schema, "a", cases.MEMORY)


@pytest.mark.parametrize("kind", cases.KEY_KINDS)
def test_a_key_of_many_rows_does_not_swell_the_index(tmp_path: Path, kind: str) -> None:
    """Rows with equal keys take about as much room in the file as others, and MESHJOIN joins them all."""
    count = 3000
    _write(tmp_path / "different", kind, list(range(count)), 1000)
    table = _write(tmp_path / "same", kind, [7] * count, 1000)
    assert (tmp_path / "same").stat().st_size < 1.1 * (tmp_path / "different").stat().st_size
    relation = PageFile(tmp_path / "same")
    in_memory = MemoryRelation(table, relation.key)
    assert not relation.unique
    assert not in_memory.unique
    stream = cases.stream(kind, [7, 8])
    on = [name.removeprefix("id_") for name in relation.key]
    join = MeshJoin(relation, stream.schema, on, 10 * cases.MEMORY, how="left", columns=[])
    out = [row for batch in stream.to_batches() for row in join.feed(batch)] + join.finish()
    assert sum(batch.num_rows for batch in out) == count + 1


@pytest.mark.parametrize("rows", [MOST_ROWS - 1, MOST_ROWS, MOST_ROWS + 1])
def test_so_many_equal_fingerprints_count_as_repeated(rows: int) -> None:
    """Of different keys with equal fingerprints either all are in the index, or the relation is not unique.

    The pages of those that are not in the index are candidates all the same.
    """
    table = cases.master("string", list(range(rows)))
    relation = MemoryRelation(
        table, ["id_a"], page_rows=1, fingerprint=lambda columns: np.zeros(len(columns[0]), dtype=np.int64)
    )
    assert relation.unique == (rows < MOST_ROWS)
    assert relation.candidates(0) == list(range(rows))


def test_null_keys_are_refused(tmp_path: Path) -> None:
    """The writer refuses a row without a key, and leaves no file."""
    table = pa.table({"id_a": pa.array([1, None], pa.int64())})
    with pytest.raises(ValueError, match=r"key columns \['id_a'\] of the relation must not be null, row 1"):
        write_page_file(tmp_path / "r", table.schema, table.to_batches(), ["id_a"])
    assert list(tmp_path.iterdir()) == []


def test_columns_are_taken_by_name(tmp_path: Path) -> None:
    """The writer refuses a batch whose columns have another order or other types."""
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("v", pa.int64())])
    swapped = pa.RecordBatch.from_pydict({"v": [10], "id": [1]})
    retyped = pa.RecordBatch.from_pydict({"id": [1], "v": [1.5]})
    for batch in (swapped, retyped):
        with pytest.raises(ValueError, match="batch must have the columns id int64, v int64, got"):
            write_page_file(tmp_path / "r", schema, [batch], ["id"])
    assert list(tmp_path.iterdir()) == []


def test_a_null_where_there_must_be_none_is_refused(tmp_path: Path) -> None:
    """The writer refuses a null in a column that is not nullable."""
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("v", pa.int64(), nullable=False)])
    batch = pa.RecordBatch.from_pydict({"id": [1, 2], "v": [10, None]})
    with pytest.raises(ValueError, match="column v of a batch must not be null, it has 1 nulls: leave such rows out"):
        write_page_file(tmp_path / "r", schema, [batch], ["id"])


def test_odd_sizes_are_named(tmp_path: Path) -> None:
    """Pages without rows and empty files are errors that say what to do."""
    table = cases.master("int64", [1])
    with pytest.raises(ValueError, match="page_rows must be at least 1, got 0"):
        write_page_file(tmp_path / "r", table.schema, table.to_batches(), ["id_a"], page_rows=0)
    (tmp_path / "r").touch()
    with pytest.raises(ValueError, match="must be a complete page file, it is empty: build it again"):
        PageFile(tmp_path / "r")


def test_the_first_read_seeks(tmp_path: Path) -> None:
    """The first read of page 0 counts as a seek."""
    _write(tmp_path / "r", "int64", [1, 2])
    relation = PageFile(tmp_path / "r")
    relation.read_page(0)
    assert (relation.counters.pages_read, relation.counters.seeks) == (1, 1)


def test_dictionaries_are_refused(tmp_path: Path) -> None:
    """The writer refuses a dictionary column, also inside a list, and leaves no file."""
    words = pa.array(["tea"]).dictionary_encode()
    for column in (words, pa.array([["tea"]], pa.list_(words.type))):
        table = pa.table({"id": [1], "name": column})
        with pytest.raises(
            ValueError, match=r"column name of a page file must not be dictionary-encoded, got .*: cast"
        ):
            write_page_file(tmp_path / "r", table.schema, table.to_batches(), ["id"])
    assert list(tmp_path.iterdir()) == []


def test_a_failed_build_leaves_the_old_file(tmp_path: Path) -> None:
    """When the source fails halfway, the old file stays, and no other file is left."""
    old = _write(tmp_path / "r", "int64", [1, 2, 3])

    def failing() -> Iterator[pa.RecordBatch]:
        yield from cases.master("int64", list(range(100))).to_batches()
        raise OSError("source has gone")

    with pytest.raises(OSError, match="source has gone"):
        write_page_file(tmp_path / "r", old.schema, failing(), ["id_a"], PAGE_ROWS)
    assert _all_rows(PageFile(tmp_path / "r")).equals(old)
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def test_damage_is_found_wherever_it_is(tmp_path: Path) -> None:
    """A flipped byte in a page, the directory or the footer is an error, and so is a truncated file."""
    path = tmp_path / "r"
    _write(path, "int64", cases.master_numbers())
    whole = path.read_bytes()
    relation = PageFile(path)
    relation.verify()
    for at in (4096 + 500, 4096 * relation.pages + 100, len(whole) - 30, len(whole) - 10):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(ValueError, match=r"build .* again"):
            PageFile(path).verify()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="must be a complete page file"):
        PageFile(path)


def test_a_damaged_page_is_found_when_it_is_read(tmp_path: Path) -> None:
    """A join never sees a page that does not match its checksum."""
    path = tmp_path / "r"
    _write(path, "int64", cases.master_numbers())
    with path.open("r+b") as file:
        file.seek(4096 + 500)
        file.write(b"\xff")
    relation = PageFile(path)
    with pytest.raises(ValueError, match=r"page 0 of .* must match its checksum"):
        relation.read_page(0)


def test_a_damaged_index_is_found_before_a_key_is_missed(tmp_path: Path) -> None:
    """`verify`, and a look-up that reads that part of the index, find a flipped bit in a key or a position."""
    path = tmp_path / "r"
    numbers = cases.master_numbers()
    _write(path, "int64", numbers)
    whole = path.read_bytes()
    footer = Footer.from_file(memoryview(whole), "r")
    positions = np.frombuffer(whole, np.int64, footer.index_size, footer.index_positions)
    place = int(np.flatnonzero(positions == 20)[0])
    for start in (footer.index_keys, footer.index_positions):
        at = start + 8 * place
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        damaged = r"index part \d+ of .* must match its checksum: build the file again"
        with pytest.raises(ValueError, match=damaged):
            PageFile(path).verify()
        with pytest.raises(ValueError, match=damaged):
            PageFile(path).locate(np.array([numbers[20]]))
        relation = PageFile(path)
        for _ in range(2):
            with pytest.raises(ValueError, match=damaged):
                relation.candidates(numbers[20])


def test_an_empty_relation_is_a_file_too(tmp_path: Path) -> None:
    """A relation without rows is a file without pages."""
    _write(tmp_path / "r", "string", [])
    relation = PageFile(tmp_path / "r")
    assert (relation.pages, relation.row_count) == (0, 0)
    assert relation.locate(np.arange(3)).tolist() == [-1, -1, -1]


def test_is_synced_before_it_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer syncs the file, renames it, then syncs the directory."""
    calls: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def noted_fsync(descriptor: int) -> None:
        calls.append("directory" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file")  # noqa: PTH112
        fsync(descriptor)

    def noted_replace(self: Path, target: Path) -> Path:
        calls.append("rename")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "replace", noted_replace)
    _write(tmp_path / "r", "int64", [1, 2, 3])
    assert calls == ["file", "rename", "directory"]
