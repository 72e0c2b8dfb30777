"""Join results kept until their stream tuple expires, for output in stream order (MESHJOIN 2007, section 3.3)."""

import numpy as np
import pyarrow as pa
from semistream.kernels import kernel
from semistream.relation.base import Page
from semistream.row_store import RowStore

__all__ = ["OrderedResults"]

_NONE = -1


class OrderedResults:
    """The results of each waiting tuple, as master rows. There is room for as many results as for waiting tuples."""

    def __init__(self, schema: pa.Schema, slots: int, heap_blocks: int) -> None:
        self.rows = RowStore(schema, slots, heap_blocks)
        self._head = np.full(slots, _NONE, dtype=np.int32)
        self._next = np.full(slots, _NONE, dtype=np.int32)
        self._free = np.arange(slots, dtype=np.int32)
        self._free_count = slots

    @staticmethod
    def bytes_per_slot(schema: pa.Schema) -> int:
        """Return the bytes that a result takes, without its strings."""
        return RowStore.bytes_per_slot(schema) + 4 + 4 + 4

    @property
    def nbytes(self) -> int:
        """Count the bytes of all arrays."""
        return self.rows.nbytes + self._head.nbytes + self._next.nbytes + self._free.nbytes

    def add(self, slots: np.ndarray, page: Page, matched: np.ndarray) -> None:
        """Keep the rows of a page that waiting tuples match."""
        master = page.rows.select(self.rows.schema.names)
        needed = self.rows.blocks_needed(master)
        if len(slots) > self._free_count or (len(needed) and needed[matched].sum() > self.rows.free_blocks):
            raise MemoryError(
                f"results in stream order must fit into memory until their tuples expire, there is room for "
                f"{len(self._free)}: give the join more memory, or use MeshJoin, whose output has no order"
            )
        self._free_count -= len(slots)
        places = self._free[self._free_count : self._free_count + len(slots)].copy()
        self.rows.put(master, matched, places, page.first + matched)
        _link(slots, places, self._head, self._next)

    def pop(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Unlink the results of tuples. Return for each result its tuple, in the order of `slots`, and its place."""
        tuples = np.empty(len(self._free) - self._free_count, dtype=np.int64)
        places = np.empty(len(tuples), dtype=np.int64)
        count = int(_unlink(slots, self._head, self._next, tuples, places))
        return tuples[:count], places[:count]

    def release(self, places: np.ndarray) -> None:
        """Free the places of results, once they are output."""
        self.rows.release(places)
        self._free[self._free_count : self._free_count + len(places)] = places
        self._free_count += len(places)


@kernel
def _link(slots: np.ndarray, places: np.ndarray, head: np.ndarray, next_: np.ndarray) -> None:
    for i in range(len(slots)):
        next_[places[i]] = head[slots[i]]
        head[slots[i]] = places[i]


@kernel
def _unlink(slots: np.ndarray, head: np.ndarray, next_: np.ndarray, tuples: np.ndarray, places: np.ndarray) -> int:
    count = 0
    for slot in slots:
        place = head[slot]
        head[slot] = _NONE
        while place != _NONE:
            tuples[count] = slot
            places[count] = place
            count += 1
            place = next_[place]
    return count
