"""The output of a join: joined rows as Arrow, or pairs of numbers."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from semistream.relation.base import Page

__all__ = ["Output", "PageRows", "PairOutput", "RowOutput", "Rows"]


class Rows(Protocol):
    """Rows that can be gathered: a chunk of the stream, waiting tuples, a page, cached tuples."""

    def take(self, rows: np.ndarray) -> list[pa.Array]:
        """Gather rows as Arrow columns."""

    def identify(self, rows: np.ndarray) -> np.ndarray:
        """Return the number of each row: in the stream for rows of the stream, in R for rows of R."""


class Output(Protocol):
    """Collects the output until it is drained."""

    def joined(self, stream: Rows, tuples: np.ndarray, master: Rows, rows: np.ndarray) -> None:
        """Add stream tuples, each with its master row."""

    def unmatched(self, stream: Rows, tuples: np.ndarray) -> None:
        """Add stream tuples that no master row matches."""

    def in_order(self, stream: Rows, tuples: np.ndarray, master: Rows, rows: np.ndarray, unmatched: np.ndarray) -> None:
        """Add joined and unmatched stream tuples together, in the order of the stream."""

    def drain(self) -> list[Any]:
        """Return what was collected, and start again with nothing."""


class RowOutput:
    """Joined rows: stream columns, then master columns. An outer join has nulls there for unmatched tuples."""

    def __init__(self, stream: pa.Schema, master: pa.Schema, *, outer: bool) -> None:
        fields = [pa.field(f.name, f.type, nullable=True, metadata=f.metadata) if outer else f for f in master]
        self.schema = pa.schema([*stream, *fields])
        self._master = master
        self._outer = outer
        self._batches: list[pa.RecordBatch] = []

    def joined(self, stream: Rows, tuples: np.ndarray, master: Rows, rows: np.ndarray) -> None:
        """Add stream tuples, each with its master row."""
        if len(tuples):
            self._add([*stream.take(tuples), *master.take(rows)[: len(self._master)]])

    def unmatched(self, stream: Rows, tuples: np.ndarray) -> None:
        """Add stream tuples that no master row matches."""
        if self._outer and len(tuples):
            self._add([*stream.take(tuples), *(pa.nulls(len(tuples), field.type) for field in self._master)])

    def in_order(self, stream: Rows, tuples: np.ndarray, master: Rows, rows: np.ndarray, unmatched: np.ndarray) -> None:
        """Add joined and unmatched stream tuples together, in the order of the stream."""
        before, self._batches = self._batches, []
        self.joined(stream, tuples, master, rows)
        self.unmatched(stream, unmatched)
        together, self._batches = self._batches, before
        if together:
            order = _stream_order(stream, tuples, unmatched if self._outer else unmatched[:0])
            self._batches.append(pa.concat_batches(together).take(pa.array(order)))

    def drain(self) -> list[pa.RecordBatch]:
        """Return what was collected, and start again with nothing."""
        batches, self._batches = self._batches, []
        return batches

    def _add(self, columns: Sequence[pa.Array]) -> None:
        self._batches.append(pa.RecordBatch.from_arrays(columns, schema=self.schema))


class PairOutput:
    """Pairs of arrays: the numbers of stream tuples, and the positions in R of their master rows (-1: no match)."""

    def __init__(self, *, outer: bool) -> None:
        self._outer = outer
        self._pairs: list[tuple[np.ndarray, np.ndarray]] = []

    def joined(self, stream: Rows, tuples: np.ndarray, master: Rows, rows: np.ndarray) -> None:
        """Add stream tuples, each with its master row."""
        if len(tuples):
            self._pairs.append((stream.identify(tuples), master.identify(rows)))

    def unmatched(self, stream: Rows, tuples: np.ndarray) -> None:
        """Add stream tuples that no master row matches."""
        if self._outer and len(tuples):
            self._pairs.append((stream.identify(tuples), np.full(len(tuples), -1, dtype=np.int64)))

    def in_order(self, stream: Rows, tuples: np.ndarray, master: Rows, rows: np.ndarray, unmatched: np.ndarray) -> None:
        """Add joined and unmatched stream tuples together, in the order of the stream."""
        kept = unmatched if self._outer else unmatched[:0]
        numbers = stream.identify(np.concatenate([tuples, kept]))
        positions = np.concatenate([master.identify(rows), np.full(len(kept), -1, dtype=np.int64)])
        order = _stream_order(stream, tuples, kept)
        self._pairs.append((numbers[order], positions[order]))

    def drain(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return what was collected, and start again with nothing."""
        pairs, self._pairs = self._pairs, []
        return pairs


def _stream_order(stream: Rows, tuples: np.ndarray, unmatched: np.ndarray) -> np.ndarray:
    """Return the indices that sort joined tuples, followed by unmatched ones, into stream order."""
    return np.argsort(np.concatenate([stream.identify(tuples), stream.identify(unmatched)]), kind="stable")


class PageRows:
    """The rows of a page, with only the given columns."""

    def __init__(self, page: Page, columns: Sequence[str]) -> None:
        self._page = page
        self._columns = columns

    def take(self, rows: np.ndarray) -> list[pa.Array]:
        """Gather rows as Arrow columns."""
        return list(self._page.rows.select(self._columns).take(pa.array(rows)).columns)

    def identify(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows' positions in R."""
        return self._page.identify(rows)
