"""H_R, the part of R that is held in memory tuple by tuple, probed by the stream (003 section 3.1, 001 section 4.1)."""

import numpy as np
import pyarrow as pa

from semistream.kernel import erase, home, kernel, mix, prefetch, tag
from semistream.row_store import RowStore

NONE = -1
_SLOT = (1 << 32) - 1


class TupleCache:
    """Master rows by key, at most one a key.

    Attributes:
        keys: 64-bit key of each slot.
        entries: open-addressed table of hash tag and slot.
        rows: the rows' columns, their ids being their positions in R.
    """

    def __init__(self, schema: pa.Schema, slots: int, heap_blocks: int) -> None:
        self.keys = np.zeros(slots, dtype=np.int64)
        self.entries = np.full(2 * slots + 1, NONE, dtype=np.int64)
        self.rows = RowStore(schema, slots, heap_blocks)
        self._used = np.zeros(slots, dtype=np.bool_)
        self.count = 0

    @staticmethod
    def bytes_per_slot(schema: pa.Schema) -> int:
        """Say what a cached row costs, its strings not counted."""
        return 8 + 2 * 8 + 1 + RowStore.bytes_per_slot(schema)

    @property
    def nbytes(self) -> int:
        """Count the bytes of all arrays."""
        return self.keys.nbytes + self.entries.nbytes + self._used.nbytes + self.rows.nbytes

    @property
    def slots(self) -> int:
        """Say how many rows can be cached: h_R."""
        return len(self.keys)

    def put(self, rows: pa.RecordBatch, chosen: np.ndarray, keys: np.ndarray, first: int, slots: np.ndarray) -> None:
        """Overwrite slots with chosen rows of a page that begins at position `first`; none of them is cached.

        A row whose strings do not fit into the heap is left out: it is not worth two others.
        """
        overwritten = slots[self._used[slots]]
        _delete(overwritten, self.keys, self.entries)
        self.rows.free(overwritten)
        self._used[overwritten] = False
        rows = rows.take(pa.array(chosen))  # few of a page
        needed = self.rows.blocks_needed(rows)
        if len(needed):
            fit = np.count_nonzero(np.cumsum(needed) <= self.rows.free_blocks)
            chosen, slots = chosen[:fit], slots[:fit]
        self.rows.put(rows, np.arange(len(slots)), slots, first + chosen)
        _insert(slots, keys[chosen], self.keys, self.entries)
        self._used[slots] = True
        self.count += len(slots) - len(overwritten)

    @property
    def has_room(self) -> bool:
        """Tell whether another row fits without one being overwritten."""
        return self.count < self.slots and self.rows.free_blocks >= self.rows.heap_blocks // 16

    def free_slots(self, count: int) -> np.ndarray:
        """Give up to `count` slots that hold no row."""
        return np.flatnonzero(~self._used)[:count]

    def lacks(self, keys: np.ndarray) -> np.ndarray:
        """Tell which keys are not cached."""
        lacking = np.empty(len(keys), dtype=np.bool_)
        _lacks(keys, self.keys, self.entries, lacking)
        return lacking


@kernel
def expect(wanted: np.ndarray, keys: np.ndarray, beside: np.ndarray, entries: np.ndarray) -> None:
    """Ask for the memory of keys that will be looked up, and of what another array has beside each of them."""
    for key in wanted:
        prefetch(entries, home(tag(mix(key)), len(entries)))
    for key in wanted:
        mark = tag(mix(key))
        entry = entries[home(mark, len(entries))]
        if entry >> 32 == mark:
            prefetch(keys, entry & _SLOT)
            prefetch(beside, entry & _SLOT)


@kernel
def find(key: int, keys: np.ndarray, entries: np.ndarray) -> int:
    """Give the slot of a key, or -1."""
    mark = tag(mix(key))
    place = home(mark, len(entries))
    while True:
        entry = entries[place]
        if entry == NONE:
            return NONE
        if entry >> 32 == mark and keys[entry & _SLOT] == key:
            return entry & _SLOT  # type: ignore[no-any-return]
        place += 1
        if place == len(entries):
            place = 0


@kernel
def _lacks(wanted: np.ndarray, keys: np.ndarray, entries: np.ndarray, lacking: np.ndarray) -> None:
    for i in range(len(wanted)):
        lacking[i] = find(wanted[i], keys, entries) == NONE


@kernel
def _insert(slots: np.ndarray, new_keys: np.ndarray, keys: np.ndarray, entries: np.ndarray) -> None:
    """Add keys that are not cached, in slots that are free."""
    for i in range(len(slots)):
        mark = tag(mix(new_keys[i]))
        place = home(mark, len(entries))
        while entries[place] != NONE:
            place += 1
            if place == len(entries):
                place = 0
        entries[place] = (mark << 32) | np.int64(slots[i])
        keys[slots[i]] = new_keys[i]


@kernel
def _delete(slots: np.ndarray, keys: np.ndarray, entries: np.ndarray) -> None:
    """Remove the keys in slots."""
    for slot in slots:
        place = home(tag(mix(keys[slot])), len(entries))
        while entries[place] & _SLOT != slot:
            place += 1
            if place == len(entries):
                place = 0
        erase(place, entries)
