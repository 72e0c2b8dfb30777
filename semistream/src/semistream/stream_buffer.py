"""SB, the stream buffer: stream tuples that have arrived and that the join has not read yet."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

__all__ = ["Chunk", "Encoder", "StreamBuffer"]


class Encoder(Protocol):
    """Turns key columns into 64-bit keys."""

    def encode(self, columns: Sequence[pa.Array]) -> tuple[np.ndarray, np.ndarray]:
        """Return the key of each row, and whether the row has one."""


class Chunk(NamedTuple):
    """Stream tuples in order of arrival."""

    rows: pa.RecordBatch
    keys: np.ndarray
    valid: np.ndarray  # the tuple has a key: no key column is null
    first: int  # the first tuple's number in the stream

    def from_(self, start: int) -> "Chunk":
        """Drop the first `start` tuples."""
        return Chunk(self.rows.slice(start), self.keys[start:], self.valid[start:], self.first + start)

    def up_to(self, stop: int) -> "Chunk":
        """Keep only the first `stop` tuples."""
        return Chunk(self.rows.slice(0, stop), self.keys[:stop], self.valid[:stop], self.first)

    @property
    def nbytes(self) -> int:
        """Count the bytes of `rows`, `keys` and `valid`."""
        return int(self.rows.nbytes) + self.keys.nbytes + self.valid.nbytes

    def take(self, rows: np.ndarray) -> list[pa.Array]:
        """Gather tuples as Arrow columns."""
        if len(rows) == self.rows.num_rows:  # rows are distinct and in order, so these are all
            return list(self.rows.columns)
        return list(self.rows.take(pa.array(rows)).columns)

    def identify(self, rows: np.ndarray) -> np.ndarray:
        """Return the tuples' numbers in the stream."""
        return self.first + rows


class StreamBuffer:
    """A queue of chunks, bounded in bytes.

    Args:
        encoder: turns key columns into 64-bit keys.
        key: names of the key columns.
        capacity: the bound in bytes.
        chunk_rows: the largest number of tuples that are read at a time.
    """

    def __init__(self, encoder: Encoder, key: Sequence[str], capacity: int, chunk_rows: int) -> None:
        self._encoder = encoder
        self._key = key
        self._chunks: deque[Chunk] = deque()
        self._arrived = 0
        self._count = 0
        self.capacity = capacity
        self.chunk_rows = chunk_rows

    BYTES_PER_ROW = 9  # of `keys` and `valid`, in addition to the row itself

    def __len__(self) -> int:
        return self._count

    @property
    def held_bytes(self) -> int:
        """Count the bytes of the tuples in the buffer."""
        return sum(chunk.nbytes for chunk in self._chunks)

    def pieces(self, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        """Slice a batch, without copies, into pieces that fit into an empty buffer."""
        pieces = []
        start = 0
        rows = self.chunk_rows
        while start < batch.num_rows:
            piece = batch.slice(start, rows)
            while piece.num_rows > 1 and piece.nbytes + self.BYTES_PER_ROW * piece.num_rows > self.capacity:
                rows = piece.num_rows // 2
                piece = batch.slice(start, rows)
            pieces.append(piece)
            start += piece.num_rows
        return pieces

    @property
    def arrived(self) -> int:
        """Count all tuples that `put` has added so far; the next tuple gets this number in the stream."""
        return self._arrived

    @property
    def oldest(self) -> int:
        """Return the number in the stream of the oldest tuple in the buffer or, if it is empty, of the next tuple."""
        return self._chunks[0].first if self._chunks else self._arrived

    def has_room(self, batch: pa.RecordBatch) -> bool:
        """Return whether a batch fits in addition to the tuples in the buffer; an empty buffer accepts any batch."""
        nbytes = batch.nbytes + self.BYTES_PER_ROW * batch.num_rows
        return not self._chunks or self.held_bytes + nbytes <= self.capacity

    def put(self, batch: pa.RecordBatch) -> None:
        """Append tuples."""
        if not batch.num_rows:
            return
        if not self.has_room(batch):
            raise ValueError(
                f"stream buffer must have room for a batch of {batch.nbytes} bytes, it holds {self.held_bytes} of "
                f"{self.capacity}: call step() first, or raise Shares.stream_buffer"
            )
        keys, valid = self._encoder.encode([batch.column(name) for name in self._key])
        self._chunks.append(Chunk(batch, keys, valid, self._arrived))
        self._arrived += batch.num_rows
        self._count += batch.num_rows

    def peek(self, most: int) -> Chunk:
        """Return the next tuples, at most `most` and at most `chunk_rows`; they stay in the buffer."""
        return self._chunks[0].up_to(min(most, self.chunk_rows))

    def drop(self, count: int) -> None:
        """Remove the next `count` tuples: at most as many as `peek` returned."""
        self._count -= count
        rest = self._chunks.popleft().from_(count)
        if len(rest.keys):
            self._chunks.appendleft(rest)

    def newest(self, count: int) -> list[pa.RecordBatch]:
        """Return the newest tuples in batches, the newest batch first; they stay in the buffer."""
        batches = []
        for chunk in reversed(self._chunks):
            if count <= 0:
                break
            batches.append(chunk.rows.slice(max(0, len(chunk.keys) - count)))
            count -= len(chunk.keys)
        return batches

    def drop_newest(self, count: int) -> None:
        """Remove the newest `count` tuples, which must be of one batch."""
        self._count -= count
        chunk = self._chunks.pop()
        if kept := len(chunk.keys) - count:
            self._chunks.append(chunk.up_to(kept))
