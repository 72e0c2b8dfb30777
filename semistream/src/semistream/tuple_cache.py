"""H_R: single rows of R that are kept in memory and that the stream probes.

CHYBRIDJOIN 2017, section 3.1; Optimised X-HYBRIDJOIN 2012, section 4.1.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from semistream.hashing import EMPTY, SLOT, erase, find, lacking, mix, prefetch_homes, prefetch_match, tag
from semistream.kernels import Integer, kernel
from semistream.relation.base import Page
from semistream.row_store import RowStore

__all__ = ["NONE", "TupleCache", "expect", "slot_of"]

NONE = -1  # no slot
_FREE, _HIDDEN, _SHOWN = range(3)  # a slot has no row; a row that the stream does not meet yet; one that it meets


class TupleCache:
    """Master rows by key.

    A key has one row; or several, which are a chain of slots. Then rows are hidden from the stream until the key has
    all of them: `hide` puts rows into slots, and `show` adds whole keys to the table.

    Args:
        schema: the rows' columns.
        slots: rows that fit.
        heap_blocks: room for their strings.
        hidden: of the slots, those that are kept for hidden rows; 0 if each key has one row.

    Attributes:
        keys: 64-bit key of each slot.
        entries: hash table from key to slot.
        rows: the rows' columns; their ids are their positions in R.
        after: the next slot of the same key; empty if keys have one row each.
        count: rows that the stream meets.
    """

    def __init__(self, schema: pa.Schema, slots: int, heap_blocks: int, hidden: int = 0) -> None:
        self.keys = np.zeros(slots, dtype=np.int64)
        self.entries = np.full(2 * slots + 1, EMPTY, dtype=np.int64)
        self.rows = RowStore(schema, slots, heap_blocks)
        self.after = np.full(slots if hidden else 0, NONE, dtype=np.int32)
        self._state = np.zeros(slots, dtype=np.int8)
        self._most = slots - hidden
        self.count = 0

    @staticmethod
    def bytes_per_slot(schema: pa.Schema) -> int:
        """Return the bytes that a cached row takes, without its strings."""
        return 8 + 2 * 8 + 1 + RowStore.bytes_per_slot(schema)

    @property
    def nbytes(self) -> int:
        """Count the bytes of all arrays."""
        return self.keys.nbytes + self.entries.nbytes + self.after.nbytes + self._state.nbytes + self.rows.nbytes

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
        self.remove(slots[self._state[slots] == _SHOWN])
        put = self.hide(page, rows, slots)
        self.show(slots[:put], slots[:put])

    def hide(self, page: Page, rows: np.ndarray, slots: np.ndarray) -> int:
        """Put rows of a page into free slots, as `put` does. Return how many fit; the stream does not meet them yet."""
        batch = page.rows.select(self.rows.schema.names).take(pa.array(rows))  # few rows of the page
        needed = self.rows.blocks_needed(batch)
        if len(needed):
            fit = np.count_nonzero(np.cumsum(needed) <= self.rows.free_blocks)
            rows, slots = rows[:fit], slots[:fit]
        self.rows.put(batch, np.arange(len(slots)), slots, page.identify(rows))
        self.keys[slots] = page.keys[rows]
        self._state[slots] = _HIDDEN
        return len(slots)

    def show(self, heads: np.ndarray, slots: np.ndarray) -> None:
        """Let the stream meet hidden rows: all rows of some keys that it does not meet yet.

        Args:
            heads: the first slot of each key.
            slots: all slots of these keys.
        """
        _insert(heads, self.keys, self.entries)
        self._state[slots] = _SHOWN
        self.count += len(slots)

    def shown(self, slots: np.ndarray) -> np.ndarray:
        """Return for each slot whether the stream meets its row."""
        meets: np.ndarray = self._state[slots] == _SHOWN
        return meets

    def remove(self, slots: np.ndarray) -> np.ndarray:
        """Remove the keys of slots, which the stream meets, with all of their rows; return the slots of these."""
        heads = np.empty(len(slots), dtype=np.int64)
        heads = heads[: _delete(slots, self.keys, self.entries, heads)]
        removed = np.concatenate([heads[:0], *(rows for _, rows in self.chains(heads, heads))])
        self.count -= len(removed)
        self.free(removed)
        return removed

    def free(self, slots: np.ndarray) -> None:
        """Free slots whose rows the stream does not meet, or not any more."""
        self.rows.release(slots)
        self._state[slots] = _FREE

    def chains(self, of: np.ndarray, slots: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the first slot of each key, then the second of those that have one, and so on; beside each its `of`."""
        while len(slots):
            following = self.after[slots] if len(self.after) else slots[:0]
            yield of, slots
            more = np.flatnonzero(following != NONE)
            of, slots = of[more], following[more]

    def has_room(self, rows: int = 1) -> bool:
        """Return whether the stream can meet more rows, and at least a sixteenth of the heap is free for strings."""
        return self.count + rows <= self._most and self.rows.free_blocks >= self.rows.heap_blocks // 16

    def free_slots(self, count: int) -> np.ndarray:
        """Return up to `count` slots that hold no row."""
        return np.flatnonzero(self._state == _FREE)[:count]

    def used_slots(self) -> np.ndarray:
        """Return the slots whose rows the stream meets."""
        return np.flatnonzero(self._state == _SHOWN)

    def lacks(self, keys: np.ndarray) -> np.ndarray:
        """Return for each key whether it is not cached."""
        return lacking(keys, self.keys, self.entries)


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
def _insert(slots: np.ndarray, keys: np.ndarray, entries: np.ndarray) -> None:
    """Add the keys of slots, which are not in the table."""
    for slot in slots:
        key = keys[slot]
        entries[-find(key, keys, entries) - 1] = (tag(mix(key)) << 32) | np.int64(slot)


@kernel
def _delete(slots: np.ndarray, keys: np.ndarray, entries: np.ndarray, heads: np.ndarray) -> int:
    """Remove the keys in slots from the table, each once; write their first slots, and return how many there are."""
    count = 0
    for slot in slots:
        place = find(keys[slot], keys, entries)
        if place >= 0:
            heads[count] = entries[place] & SLOT
            count += 1
            erase(place, entries)
    return count
