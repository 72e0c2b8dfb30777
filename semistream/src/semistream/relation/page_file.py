"""R in a memory-mapped file of Arrow pages with an index."""

import mmap
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
from semistream.keys import as_int64
from semistream.relation import page_file_format as fmt
from semistream.relation.base import IndexedRelation, Page
from semistream.relation.key_index import CheckedIndex
from semistream.relation.row_reader import RowReader

__all__ = ["PageFile"]


class PageFile(IndexedRelation):
    """Reads a file that `write_page_file` wrote. The first use of a page or part of the index verifies its checksum.

    Args:
        path: the file.
        uncached: whether reads bypass the operating system's page cache (O_DIRECT), so that each goes to the disk.
    """

    def __init__(self, path: Path, *, uncached: bool = False) -> None:
        with path.open("rb") as file:
            if not path.stat().st_size:  # mmap fails for an empty file
                raise ValueError(f"{path} must be a complete page file, it is empty: build it again")
            self._mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        content = memoryview(self._mapped)
        footer = fmt.Footer.from_file(content, str(path))
        self._describe(fmt.schema_from_text(footer.schema), footer.key, footer.page_rows)
        self.row_count = footer.row_count
        self.unique = footer.unique
        self.path = path
        self._file = pa.py_buffer(self._mapped)
        directory = content[footer.directory : footer.directory + self.pages * fmt.DIRECTORY.itemsize]
        if zlib.crc32(directory) != footer.directory_checksum:
            raise ValueError(f"page directory of {path} must match its checksum: build the file again")
        entries = np.frombuffer(directory, dtype=fmt.DIRECTORY)
        self._offsets: list[int] = entries["offset"].tolist()
        self._lengths: list[int] = entries["length"].tolist()
        self._checksums: list[int] = entries["checksum"].tolist()
        self._checked = np.zeros(self.pages, dtype=np.bool_)
        self.page_bytes = max(self._lengths, default=0)
        self._index: CheckedIndex = CheckedIndex(
            np.frombuffer(content, np.int64, footer.index_size, footer.index_keys),
            np.frombuffer(content, np.int64, footer.index_size, footer.index_positions),
            footer.index_checksums,
            str(path),
        )
        self._stored = fmt.stored_schema(self.schema, exact=self.codec.exact)
        self._key_column = self._stored.get_field_index(self.key[0] if self.codec.exact else fmt.FINGERPRINT)
        self._uncached = _UncachedReader(path, fmt.aligned(self.page_bytes)) if uncached else None
        self.reads_rows = not uncached and RowReader.reads(self.schema)
        self._rows: RowReader | None = None  # made when the first single row is read

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file descriptor of uncached reads; the file stays mapped while a page of it is in use."""
        if self._uncached:
            self._uncached.close()

    def verify(self) -> None:
        """Compare every page and every part of the index with its checksum."""
        self._index.verify()
        for page in range(self.pages):
            self._check(page, self._file.slice(self._offsets[page], self._lengths[page]))

    def _read(self, page: int) -> tuple[Page, int]:
        offset, length = self._offsets[page], self._lengths[page]
        if self._uncached:
            message, nbytes = self._uncached.read(offset, length), fmt.aligned(length)
        else:
            message, nbytes = self._file.slice(offset, length), length
        if not self._checked[page]:
            self._check(page, message)
            self._checked[page] = True
        batch = pa.ipc.read_record_batch(message, self._stored)
        keys = as_int64(batch.column(self._key_column))
        rows = batch if self.codec.exact else batch.select(self.schema.names)
        return Page(page * self.page_rows, keys, rows), nbytes

    def _read_rows(self, positions: np.ndarray, columns: Sequence[str]) -> pa.RecordBatch:
        return self._noted(positions).read(positions, columns)

    def _fitting(self, positions: np.ndarray, columns: Sequence[str], most_bytes: int) -> int:
        return self._noted(positions).fitting(positions, columns, most_bytes)

    def _noted(self, positions: np.ndarray) -> RowReader:
        """Return the reader of single rows, which knows the pages of some rows."""
        self._rows = self._rows or RowReader(self._file, self._stored, self.pages, self.page_rows)
        for page in self._rows.unknown(positions):
            self._read(page)  # compares the page with its checksum
            message = self._file.slice(self._offsets[page], self._lengths[page])
            self._rows.note(page, pa.ipc.read_record_batch(message, self._stored))
        return self._rows

    def _check(self, page: int, message: pa.Buffer) -> None:
        if zlib.crc32(message) != self._checksums[page]:
            raise ValueError(f"page {page} of {self.path} must match its checksum: build the file again")


class _UncachedReader:
    """Reads with O_DIRECT into one buffer; the next read overwrites it."""

    def __init__(self, path: Path, nbytes: int) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
        self._buffer = mmap.mmap(-1, max(nbytes, fmt.ALIGNMENT))  # aligned, as O_DIRECT requires
        self._view = memoryview(self._buffer)

    def read(self, offset: int, length: int) -> pa.Buffer:
        """Read `length` bytes at `offset`; a read at the end of the file is shorter than the aligned length."""
        done = os.preadv(self._descriptor, [self._view[: fmt.aligned(length)]], offset)
        if done < length:
            raise OSError(f"page at {offset} must have {length} bytes, {done} could be read: build the file again")
        return pa.py_buffer(self._buffer).slice(0, length)

    def close(self) -> None:
        os.close(self._descriptor)
