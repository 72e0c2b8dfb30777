"""H_R: single rows of R that are kept in memory and that the stream probes.

CHYBRIDJOIN 2017, section 3.1; Optimised X-HYBRIDJOIN 2012, section 4.1.
"""

import numpy as np
import pyarrow as pa
from semistream.hashing import EMPTY, SLOT, erase, find, mix, prefetch_homes, prefetch_match, tag
from semistream.kernels import Integer, kernel
from semistream.relation.base import Page
from semistream.row_store import RowStore

__all__ = ["NONE", "TupleCache", "expect", "slot_of"]

NONE = -1  # no slot has the key


class TupleCache:
    """Master rows by key, at most one row per key.

    Attributes:
        keys: 64-bit key of each slot.
        entries: hash table from key to slot.
        rows: the rows' columns; their ids are their positions in R.
    """

    def __init__(self, schema: pa.Schema, slots: int, heap_blocks: int) -> None:
        self.keys = np.zeros(slots, dtype=np.int64)
        self.entries = np.full(2 * slots + 1, EMPTY, dtype=np.int64)
        self.rows = RowStore(schema, slots, heap_blocks)
        self._used = np.zeros(slots, dtype=np.bool_)
        self.count = 0

    @staticmethod
    def bytes_per_slot(schema: pa.Schema) -> int:
        """Return the bytes that a cached row takes, without its strings."""
        return 8 + 2 * 8 + 1 + RowStore.bytes_per_slot(schema)

    @property
    def nbytes(self) -> int:
        """Count the bytes of all arrays."""
        return self.keys.nbytes + self.entries.nbytes + self._used.nbytes + self.rows.nbytes

    @property
    def slots(self) -> int:
        """Return how many rows can be cached: h_R."""
        return len(self.keys)

    def put(self, page: Page, rows: np.ndarray, slots: np.ndarray) -> None:
        """Put rows of a page into slots, and overwrite the rows that are there.

        From the first row whose strings no longer fit into the heap, rows are left out: room for their strings would
        cost other cached rows.

        Args:
            page: rows of R.
            rows: those that are put; none of them is cached.
            slots: one slot for each of `rows`.
        """
        overwritten = slots[self._used[slots]]
        _delete(overwritten, self.keys, self.entries)
        self.rows.release(overwritten)
        self._used[overwritten] = False
        batch = page.rows.select(self.rows.schema.names).take(pa.array(rows))  # few rows of the page
        needed = self.rows.blocks_needed(batch)
        if len(needed):
            fit = np.count_nonzero(np.cumsum(needed) <= self.rows.free_blocks)
            rows, slots = rows[:fit], slots[:fit]
        self.rows.put(batch, np.arange(len(slots)), slots, page.identify(rows))
        _insert(slots, page.keys[rows], self.keys, self.entries)
        self._used[slots] = True
        self.count += len(slots) - len(overwritten)

    @property
    def has_room(self) -> bool:
        """Return whether a slot is free, and at least a sixteenth of the heap for strings."""
        return self.count < self.slots and self.rows.free_blocks >= self.rows.heap_blocks // 16

    def free_slots(self, count: int) -> np.ndarray:
        """Return up to `count` slots that hold no row."""
        return np.flatnonzero(~self._used)[:count]

    def used_slots(self) -> np.ndarray:
        """Return the slots that hold a row."""
        return np.flatnonzero(self._used)

    def lacks(self, keys: np.ndarray) -> np.ndarray:
        """Return for each key whether it is not cached."""
        lacking = np.empty(len(keys), dtype=np.bool_)
        _lacks(keys, self.keys, self.entries, lacking)
        return lacking


@kernel
def expect(wanted: np.ndarray, keys: np.ndarray, entries: np.ndarray, beside: np.ndarray) -> None:
    """Prefetch the entries and keys that a search will read, and each key's slot in `beside`."""
    prefetch_homes(wanted, entries)
    for key in wanted:
        prefetch_match(key, keys, entries, beside)


@kernel
def slot_of(key: int, keys: np.ndarray, entries: np.ndarray) -> Integer:
    """Return the slot of a key, or `NONE`."""
    place = find(key, keys, entries)
    return entries[place] & SLOT if place >= 0 else NONE


@kernel
def _lacks(wanted: np.ndarray, keys: np.ndarray, entries: np.ndarray, lacking: np.ndarray) -> None:
    for i in range(len(wanted)):
        lacking[i] = find(wanted[i], keys, entries) < 0


@kernel
def _insert(slots: np.ndarray, new_keys: np.ndarray, keys: np.ndarray, entries: np.ndarray) -> None:
    """Add keys that are not cached, in slots that are free."""
    for i in range(len(slots)):
        key = new_keys[i]
        entries[-find(key, keys, entries) - 1] = (tag(mix(key)) << 32) | np.int64(slots[i])
        keys[slots[i]] = key


@kernel
def _delete(slots: np.ndarray, keys: np.ndarray, entries: np.ndarray) -> None:
    """Remove the keys in slots."""
    for slot in slots:
        erase(find(keys[slot], keys, entries), entries)
