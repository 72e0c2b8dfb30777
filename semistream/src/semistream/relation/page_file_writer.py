"""Builds a page file from any Arrow source; memory is bounded by a page, a batch and one part of the index."""

import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
from semistream.durability import fsync_directory
from semistream.keys import KeyCodec
from semistream.relation import page_file_format as fmt
from semistream.relation.base import check_keys, check_page_rows, is_unique
from semistream.relation.key_index import (
    PARTITIONS,
    KeyIndex,
    fill_part,
    indexed,
    part_checksum,
    part_of,
    part_size,
)

__all__ = ["write_page_file"]

_ENTRIES_AT_ONCE = 1 << 20
_ENTRY = np.dtype([("key", np.int64), ("position", np.int64)])


def write_page_file(
    path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], key: Sequence[str], page_rows: int = 500
) -> None:
    """Write rows as pages with an index, in the order of the batches; the file appears complete or not at all.

    Args:
        path: the file; an existing one is replaced.
        schema: the rows' columns.
        batches: the rows, in batches of any size with these columns in this order.
        key: names of the key columns, which must have no nulls.
        page_rows: rows of a page.
    """
    check_page_rows(page_rows)
    fmt.check_schema(schema)
    directory = path.parent
    with ExitStack() as stack:
        parts = [stack.enter_context(tempfile.TemporaryFile(dir=directory)) for _ in range(PARTITIONS)]
        handle, name = tempfile.mkstemp(dir=directory, prefix=f".{path.name}.")
        stack.callback(lambda: Path(name).unlink(missing_ok=True))
        with os.fdopen(handle, "w+b") as file:
            _write(file, parts, schema, batches, key, page_rows)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
        fsync_directory(directory)


def _write(
    file: IO[bytes],
    parts: Sequence[IO[bytes]],
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    key: Sequence[str],
    page_rows: int,
) -> None:
    codec = KeyCodec([schema.field(name).type for name in key])
    stored = fmt.stored_schema(schema, exact=codec.exact)
    file.write(fmt.MAGIC)
    entries: list[tuple[int, int, int]] = []
    rows = 0
    for page in _pages(schema, batches, page_rows):
        keys = check_keys(codec, page, key)
        columns = page.columns if codec.exact else [*page.columns, pa.array(keys)]
        message = pa.RecordBatch.from_arrays(columns, schema=stored).serialize()
        entries.append((_seek_aligned(file), message.size, zlib.crc32(message)))
        file.write(message)
        _spill(parts, keys, rows)
        rows += page.num_rows
    size, keys_at, positions_at, checksums = _write_index(file, parts)
    directory = np.array(entries, dtype=fmt.DIRECTORY).tobytes()
    directory_at = _seek_aligned(file)
    file.write(directory)
    file.flush()
    footer = fmt.Footer(
        schema=fmt.schema_to_text(schema),
        key=list(key),
        row_count=rows,
        page_rows=page_rows,
        unique=_unique(file, codec, stored, key, page_rows, entries, (size, keys_at, positions_at)),
        index_keys=keys_at,
        index_positions=positions_at,
        index_size=size,
        index_checksums=checksums,
        directory=directory_at,
        directory_checksum=zlib.crc32(directory),
    )
    file.write(footer.to_bytes())


def _pages(schema: pa.Schema, batches: Iterable[pa.RecordBatch], page_rows: int) -> Iterator[pa.RecordBatch]:
    """Cut batches into pages of exactly `page_rows` rows; the last page can have fewer."""
    held: list[pa.RecordBatch] = []
    count = 0
    for whole in batches:
        _check_batch(whole, schema)
        batch = whole
        while count + batch.num_rows >= page_rows:
            held.append(batch.slice(0, page_rows - count))
            batch = batch.slice(page_rows - count)
            yield pa.concat_batches(held)
            held, count = [], 0
        if batch.num_rows:
            held.append(batch)
            count += batch.num_rows
    if held:
        yield pa.concat_batches(held)


def _check_batch(batch: pa.RecordBatch, schema: pa.Schema) -> None:
    """Refuse columns with other names, order or types, and nulls in columns that are not nullable."""
    if batch.schema.names != schema.names or batch.schema.types != schema.types:
        raise ValueError(
            f"batch must have the columns {fmt.named(schema)}, got {fmt.named(batch.schema)}: select and cast them"
        )
    for field, column in zip(schema, batch.columns, strict=True):
        if not field.nullable and column.null_count:
            raise ValueError(
                f"column {field.name} of a batch must not be null, it has {column.null_count} nulls: "
                "leave such rows out, or make the column nullable"
            )


def _spill(parts: Sequence[IO[bytes]], keys: np.ndarray, first: int) -> None:
    """Append keys and positions to the temporary file of their part of the index."""
    entries = np.empty(len(keys), dtype=_ENTRY)
    entries["key"] = keys
    entries["position"] = np.arange(first, first + len(keys))
    part = part_of(keys)
    order = np.argsort(part, kind="stable")
    for p, run in zip(*_runs(part[order]), strict=True):
        parts[p].write(entries[order[run]].tobytes())


def _runs(ordered: np.ndarray) -> tuple[list[int], list[slice]]:
    values, starts = np.unique(ordered, return_index=True)
    stops = np.append(starts[1:], len(ordered))
    return values.tolist(), [slice(a, b) for a, b in zip(starts, stops, strict=True)]


def _write_index(file: IO[bytes], parts: Sequence[IO[bytes]]) -> tuple[int, int, int, list[int]]:
    """Write the index part by part. Return its size, the offsets of keys and positions, and the parts' checksums."""
    checksums = []
    size = part_size(max(_drop_repeated(part) for part in parts))
    keys_at = _seek_aligned(file)
    positions_at = fmt.aligned(keys_at + PARTITIONS * size * 8)
    for p, part in enumerate(parts):
        part.seek(0)
        entries = np.frombuffer(part.read(), dtype=_ENTRY)
        keys, positions = np.zeros(size, dtype=np.int64), np.full(size, -1, dtype=np.int64)
        fill_part(entries["key"].copy(), entries["position"].copy(), keys, positions)
        file.seek(keys_at + p * size * 8)
        file.write(keys.tobytes())
        file.seek(positions_at + p * size * 8)
        file.write(positions.tobytes())
        checksums.append(part_checksum(keys, positions))
    return PARTITIONS * size, keys_at, positions_at, checksums


def _drop_repeated(part: IO[bytes]) -> int:
    """Keep the first `MOST_ROWS` entries of each key in a part's temporary file; return how many are left."""
    kept = np.empty(0, dtype=_ENTRY)
    part.seek(0)
    while more := part.read(_ENTRIES_AT_ONCE * _ENTRY.itemsize):
        entries = np.concatenate([kept, np.frombuffer(more, dtype=_ENTRY)])
        kept = entries[indexed(entries["key"])]
    part.seek(0)
    part.truncate()
    part.write(kept.tobytes())
    return len(kept)


def _unique(
    file: IO[bytes],
    codec: KeyCodec,
    stored: pa.Schema,
    key: Sequence[str],
    page_rows: int,
    entries: Sequence[tuple[int, int, int]],
    index: tuple[int, int, int],
) -> bool:
    """Return whether the keys just written are unique."""
    size, keys_at, positions_at = index

    def fetch(positions: np.ndarray) -> pa.RecordBatch:
        found = []
        for position in positions:
            offset, length, _ = entries[position // page_rows]
            message = pa.py_buffer(os.pread(file.fileno(), length, offset))
            page = pa.ipc.read_record_batch(message, stored).select(list(key))
            found.append(page.slice(position % page_rows, 1))
        return pa.concat_batches(found)

    with_keys = np.memmap(file, dtype=np.int64, mode="r", offset=keys_at, shape=(size,))
    with_positions = np.memmap(file, dtype=np.int64, mode="r", offset=positions_at, shape=(size,))
    return is_unique(codec, KeyIndex(np.asarray(with_keys), np.asarray(with_positions)), fetch)


def _seek_aligned(file: IO[bytes]) -> int:
    offset = fmt.aligned(file.seek(0, os.SEEK_END))
    file.seek(offset)
    return offset
