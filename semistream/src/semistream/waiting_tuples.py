"""The stream tuples that wait for their page: hash table H_S, queue Q and the tuples' columns over the same slots."""

import numpy as np
import pyarrow as pa
from semistream.row_store import RowStore
from semistream.stream_queue import StreamQueue
from semistream.stream_table import StreamTable

__all__ = ["WaitingTuples"]


class WaitingTuples:
    """H_S and Q over the same slots, h_S of them.

    Attributes:
        table: H_S, tuples by key.
        queue: Q, tuples by arrival.
        rows: the tuples' columns; their ids are their numbers in the stream.
    """

    def __init__(self, schema: pa.Schema, slots: int, heap_blocks: int) -> None:
        self.table = StreamTable(slots)
        self.rows = RowStore(schema, slots, heap_blocks)
        self.queue = StreamQueue(self.rows.ids)
        self._free = np.arange(slots - 1, -1, -1, dtype=np.int32)
        self._free_count = slots

    @staticmethod
    def bytes_per_slot(schema: pa.Schema) -> int:
        """Return the bytes that a waiting tuple takes, without its strings."""
        return StreamTable.bytes_per_slot() + StreamQueue.bytes_per_slot() + RowStore.bytes_per_slot(schema) + 4

    @property
    def nbytes(self) -> int:
        """Count the bytes of all arrays."""
        return self.table.nbytes + self.queue.nbytes + self.rows.nbytes + self._free.nbytes

    def __len__(self) -> int:
        return len(self.queue)

    @property
    def slots(self) -> int:
        """Return how many tuples can wait: h_S."""
        return len(self._free)

    @property
    def room(self) -> int:
        """Return how many more tuples can wait: w."""
        return self._free_count

    def insert(self, batch: pa.RecordBatch, rows: np.ndarray, keys: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Add rows of a batch to H_S and Q, and return their slots. The caller checks that there is room."""
        self._free_count -= len(rows)
        slots = self._free[self._free_count : self._free_count + len(rows)].copy()
        self.rows.put(batch, rows, slots, numbers)
        self.table.insert(slots, keys)
        self.queue.append(slots)
        return slots

    def delete(self, slots: np.ndarray) -> None:
        """Remove tuples from H_S and Q."""
        self.table.delete(slots)
        self.release(slots)

    def release(self, slots: np.ndarray) -> None:
        """Remove tuples from Q that are no longer in H_S, and free their slots."""
        self.queue.remove(slots)
        self.rows.release(slots)
        self._free[self._free_count : self._free_count + len(slots)] = slots
        self._free_count += len(slots)

    def keys(self, slots: np.ndarray) -> np.ndarray:
        """Return the 64-bit keys of tuples."""
        keys: np.ndarray = self.table.keys[slots]
        return keys
