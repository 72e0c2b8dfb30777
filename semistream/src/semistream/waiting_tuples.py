"""The stream tuples that wait for their page: hash table H_S, queue Q and the tuples themselves, slot by slot."""

import numpy as np
import pyarrow as pa

from semistream.row_store import RowStore
from semistream.stream_queue import StreamQueue
from semistream.stream_table import StreamTable


class WaitingTuples:
    """H_S and Q over the same slots, h_S of them.

    Attributes:
        table: H_S, tuples by key.
        queue: Q, tuples by arrival.
        rows: the tuples' columns, their ids being their numbers in the stream.
    """

    def __init__(self, schema: pa.Schema, slots: int, heap_blocks: int) -> None:
        self.table = StreamTable(slots)
        self.rows = RowStore(schema, slots, heap_blocks)
        self.queue = StreamQueue(self.rows.ids)
        self._free = np.arange(slots - 1, -1, -1, dtype=np.int32)
        self._free_count = slots

    @staticmethod
    def bytes_per_slot(schema: pa.Schema) -> int:
        """Say what a waiting tuple costs, its strings not counted."""
        return StreamTable.bytes_per_slot() + StreamQueue.bytes_per_slot() + RowStore.bytes_per_slot(schema) + 4

    @property
    def nbytes(self) -> int:
        """Count the bytes of all arrays."""
        return self.table.nbytes + self.queue.nbytes + self.rows.nbytes + self._free.nbytes

    def __len__(self) -> int:
        return len(self.queue)

    @property
    def slots(self) -> int:
        """Say how many tuples can wait: h_S."""
        return len(self._free)

    @property
    def free(self) -> int:
        """Say how many more tuples can wait: w."""
        return self._free_count

    def insert(self, batch: pa.RecordBatch, chosen: np.ndarray, keys: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Load chosen rows of a batch into H_S and Q, where there is room for them; give their slots."""
        self._free_count -= len(chosen)
        slots = self._free[self._free_count : self._free_count + len(chosen)].copy()
        self.rows.put(batch, chosen, slots, numbers)
        self.table.insert(slots, keys)
        self.queue.append(slots)
        return slots

    def delete(self, slots: np.ndarray) -> None:
        """Delete tuples from H_S along with their nodes in Q."""
        self.table.delete(slots)
        self.release(slots)

    def release(self, slots: np.ndarray) -> None:
        """Delete the nodes in Q of tuples that were taken from H_S already."""
        self.queue.remove(slots)
        self.rows.free(slots)
        self._free[self._free_count : self._free_count + len(slots)] = slots
        self._free_count += len(slots)

    def keys(self, slots: np.ndarray) -> np.ndarray:
        """Give the 64-bit keys of tuples."""
        keys: np.ndarray = self.table.keys[slots]
        return keys
