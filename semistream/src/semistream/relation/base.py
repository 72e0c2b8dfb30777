"""The interface of R: pages of consecutive rows, an index from key to page, and exact counts of what was read."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from semistream.keys import Fingerprint, KeyCodec, fingerprint
from semistream.relation.key_index import MOST_ROWS, KeyIndex

__all__ = ["Counters", "IndexedRelation", "Page", "Relation", "check_keys", "check_page_rows", "is_unique"]


class Page(NamedTuple):
    """Rows of R in memory: a page of consecutive rows, or single rows."""

    first: int  # the first row's position in R
    keys: np.ndarray  # 64-bit key of each row
    rows: pa.RecordBatch
    positions: np.ndarray | None = None  # of single rows

    def identify(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows' positions in R."""
        return self.first + rows if self.positions is None else self.positions[rows]


@dataclass
class Counters:
    """What has been read from a relation so far."""

    pages_read: int = 0
    rows_read: int = 0  # one by one
    bytes_read: int = 0
    seeks: int = 0  # page reads that did not continue the previous one, and single rows
    look_ups: int = 0  # keys looked up in the index


class Relation(ABC):
    """R, divided into pages of consecutive rows.

    Attributes:
        schema: columns of R.
        key: names of the key columns.
        codec: turns key columns into 64-bit keys.
        row_count: number of rows of R.
        page_rows: number of rows in a page; the last page can have fewer.
        page_bytes: bytes of the largest page.
        unique: whether no two rows have the same key.
        reads_rows: whether single rows can be read.
        counters: what has been read so far.
    """

    schema: pa.Schema
    key: tuple[str, ...]
    codec: KeyCodec
    row_count: int
    page_rows: int
    page_bytes: int
    unique: bool
    reads_rows: bool = False
    counters: Counters

    def _describe(
        self, schema: pa.Schema, key: Sequence[str], page_rows: int, fingerprint: Fingerprint = fingerprint
    ) -> None:
        """Check and set the attributes that all stores have in common."""
        missing = [name for name in key if name not in schema.names]
        if not key or missing:
            raise ValueError(f"key must name columns of the relation {schema.names}, got {list(key)}: correct the key")
        check_page_rows(page_rows)
        self.schema = schema
        self.key = tuple(key)
        self.codec = KeyCodec([schema.field(name).type for name in key], fingerprint=fingerprint)
        self.page_rows = page_rows
        self.counters = Counters()
        self._last_page = -2  # the first read counts as a seek: no page follows this one

    @property
    def pages(self) -> int:
        """Count the pages of R."""
        return -(-self.row_count // self.page_rows)

    @property
    def most_pages(self) -> int:
        """Return the pages that R can grow to; joins reserve memory for them."""
        return self.pages

    def read_page(self, page: int) -> Page:
        """Read one page."""
        if not 0 <= page < self.pages:
            raise ValueError(f"page must be between 0 and {self.pages - 1}, got {page}: `pages` is the number of pages")
        read, nbytes = self._read(page)
        self.counters.pages_read += 1
        self.counters.bytes_read += nbytes
        self.counters.seeks += page != self._last_page + 1
        self._last_page = page
        return read

    def read_rows(self, positions: np.ndarray, keys: np.ndarray, columns: Sequence[str], most_bytes: int) -> Page:
        """Read single rows, if `reads_rows`; if they are too large, only the first of them.

        Args:
            positions: of the rows.
            keys: their 64-bit keys.
            columns: what is read of each row.
            most_bytes: that the strings of the rows may take; one row is read however large it is.
        """
        fitting = self._fitting(positions, columns, most_bytes)
        positions, keys = positions[:fitting], keys[:fitting]
        rows = self._read_rows(positions, columns)
        self.counters.rows_read += len(positions)
        self.counters.bytes_read += rows.nbytes
        self.counters.seeks += len(positions)
        return Page(0, keys, rows, positions)

    def find(self, keys: np.ndarray) -> np.ndarray:
        """Look up keys in the index, if `reads_rows`. Return the position of a row with each key, or -1."""
        self.counters.look_ups += len(keys)
        return self._find(keys)

    def locate(self, keys: np.ndarray) -> np.ndarray:
        """Look up keys in the index. Return the page of each key, or -1 if R lacks it."""
        self.counters.look_ups += len(keys)
        return self._locate(keys)

    def candidates(self, key: int) -> list[int]:
        """Return every page that can have a key: several if fingerprints collide or the key is not unique."""
        self.counters.look_ups += 1
        return self._candidates(key)

    @property
    def version(self) -> int:
        """Return a number that changes when R may have new rows; then joins look absent keys up again."""
        return 0

    @abstractmethod
    def _read(self, page: int) -> tuple[Page, int]:
        """Read one page. Return it with the number of bytes read."""

    def _fitting(self, positions: np.ndarray, columns: Sequence[str], most_bytes: int) -> int:  # noqa: ARG002 - for those that have strings
        """Return how many of the rows, from the first on, have strings that fit."""
        return len(positions)

    def _read_rows(self, positions: np.ndarray, columns: Sequence[str]) -> pa.RecordBatch:
        raise NotImplementedError(f"{type(self).__name__} reads whole pages only")

    def _find(self, keys: np.ndarray) -> np.ndarray:
        raise NotImplementedError(f"{type(self).__name__} finds pages only")

    @abstractmethod
    def _locate(self, keys: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def _candidates(self, key: int) -> list[int]: ...


class IndexedRelation(Relation):
    """A relation whose index is a `KeyIndex`."""

    _index: KeyIndex

    def _find(self, keys: np.ndarray) -> np.ndarray:
        return self._index.positions(keys)

    def _locate(self, keys: np.ndarray) -> np.ndarray:
        positions = self._index.positions(keys)
        return np.where(positions < 0, -1, positions // self.page_rows)

    def _candidates(self, key: int) -> list[int]:
        positions = self._index.all_positions(key)
        pages: list[int] = np.unique(positions // self.page_rows).tolist()
        if len(positions) == MOST_ROWS:  # the index leaves out the rows behind these
            pages += range(pages[-1] + 1, self.pages)
        return pages


def is_unique(codec: KeyCodec, index: KeyIndex, fetch: Callable[[np.ndarray], pa.RecordBatch]) -> bool:
    """Return whether all keys are unique. `fetch` returns the key columns of the rows at given positions."""
    repeated = index.repeated_keys()
    if codec.exact:
        return not len(repeated)
    groups = (fetch(index.all_positions(int(key))).to_pylist() for key in repeated)
    return all(len({tuple(row.values()) for row in group}) == len(group) < MOST_ROWS for group in groups)


def check_page_rows(page_rows: int) -> None:
    """Refuse pages without rows."""
    if page_rows < 1:
        raise ValueError(f"page_rows must be at least 1, got {page_rows}: try 500")


def check_keys(codec: KeyCodec, rows: pa.RecordBatch, key: Sequence[str]) -> np.ndarray:
    """Return the 64-bit keys of rows of R; raise ValueError if a key column is null."""
    keys, valid = codec.encode([rows.column(name) for name in key])
    if not valid.all():
        raise ValueError(
            f"key columns {list(key)} of the relation must not be null, row {int(np.argmin(valid))} of a batch has a "
            "null: leave such rows out"
        )
    return keys
