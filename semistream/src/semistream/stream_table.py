"""H_S: the multi-hash table of waiting stream tuples; a key may have any number of them.

HYBRIDJOIN 2011, section 4.1; CHYBRIDJOIN 2017, section 3.2.

Each key has one entry. The tuples of a key form a doubly linked list, so that a tuple is removed in constant time even
when all wait for the same key. The entry has the slot of the list's first tuple.

Most master rows of a page have no waiting tuples. A filter of the waiting keys rejects nearly all of these rows. It has
16 bits per slot and fits into the processor's cache; each key sets the bit that its hash selects. The bits of removed
keys stay set until the removed tuples are more than half as many as the slots; then the filter is rebuilt.
"""

import numpy as np
from semistream.hashing import (
    AHEAD,
    EMPTY,
    SLOT,
    erase,
    find,
    home,
    mix,
    prefetch,
    prefetch_homes,
    prefetch_match,
    tag,
)
from semistream.kernels import Integer, kernel

__all__ = ["START", "Cursor", "Found", "StreamTable"]

Cursor = tuple[int, int]  # the index of the next key, and the slot of the next tuple in its list or -1 for the first
Found = tuple[int, Cursor]  # the number of matches, and where to continue
START: Cursor = (0, -1)

_NONE = -1  # no tuple: the end of a list
_FILTER_BYTES = 2  # per slot
_ROWS = 1024  # rows of a page that are filtered at a time


class StreamTable:
    """Tuples by key. A slot identifies a tuple."""

    def __init__(self, slots: int) -> None:
        self.keys = np.zeros(slots, dtype=np.int64)
        self._entries = np.full(2 * slots, EMPTY, dtype=np.int64)
        self._after = np.full(slots, _NONE, dtype=np.int32)
        self._before = np.full(slots, _NONE, dtype=np.int32)
        self._filter = np.zeros(_FILTER_BYTES * slots, dtype=np.uint8)
        self._removed = 0  # tuples removed since the filter was built

    @staticmethod
    def bytes_per_slot() -> int:
        """Return the bytes that a tuple takes in the table."""
        return 8 + 2 * 8 + 4 + 4 + _FILTER_BYTES

    @property
    def nbytes(self) -> int:
        """Count the bytes of all arrays."""
        links = self._after.nbytes + self._before.nbytes
        return self.keys.nbytes + self._entries.nbytes + links + self._filter.nbytes

    def insert(self, slots: np.ndarray, keys: np.ndarray) -> None:
        """Add the tuples in `slots`."""
        _insert(slots, keys, self.keys, self._entries, self._after, self._before, self._filter)

    def probe(self, keys: np.ndarray, cursor: Cursor, found_slots: np.ndarray, found_rows: np.ndarray) -> Found:
        """Find the tuples that have each master row's key, until `found_slots` is full.

        Args:
            keys: the 64-bit key of each row of a page.
            cursor: where to continue; `START` for a new page.
            found_slots: receives the slot of each match.
            found_rows: receives the row of each match.

        Returns:
            The number of matches, and the cursor to continue from. All keys are done when the first number of the
            cursor is the number of keys.
        """
        arrays = (self.keys, self._entries, self._after, self._filter, found_slots, found_rows)
        found, row, slot = _probe(keys, *cursor, *arrays)
        return int(found), (int(row), int(slot))

    def pop(self, keys: np.ndarray, cursor: Cursor, found_slots: np.ndarray, found_rows: np.ndarray) -> Found:
        """Find tuples as `probe` does, and remove them from the table."""
        arrays = (self.keys, self._entries, self._after, self._before, self._filter, found_slots, found_rows)
        found, row = _pop(keys, cursor[0], *arrays, np.empty(_ROWS, dtype=np.int64), np.empty(AHEAD, dtype=np.int64))
        self._count_removed(found)
        return found, (row, _NONE)

    def delete(self, slots: np.ndarray) -> None:
        """Remove tuples."""
        _delete(slots, self.keys, self._entries, self._after, self._before)
        self._count_removed(len(slots))

    def _count_removed(self, count: int) -> None:
        """Count removed tuples, and rebuild the filter when they are more than half as many as the slots."""
        self._removed += count
        if 2 * self._removed > len(self.keys):
            _fill(self._entries, self._filter)
            self._removed = 0


@kernel
def _note(mark: Integer, bits: np.ndarray) -> None:
    """Set the bit of a tag in the filter."""
    bit = home(mark, 8 * len(bits))
    bits[bit >> 3] |= np.uint8(1 << (bit & 7))


@kernel
def _noted(mark: Integer, bits: np.ndarray) -> Integer:
    """Return the bit of a tag in the filter: 0 if no tuple has the tag."""
    bit = home(mark, 8 * len(bits))
    return (bits[bit >> 3] >> (bit & 7)) & 1  # type: ignore[no-any-return]


@kernel
def _fill(entries: np.ndarray, bits: np.ndarray) -> None:
    """Set the bits of the keys that are in the table, and no others."""
    bits[:] = 0
    for entry in entries:
        if entry != EMPTY:
            _note(entry >> 32, bits)


@kernel
def _insert(
    slots: np.ndarray,
    new_keys: np.ndarray,
    keys: np.ndarray,
    entries: np.ndarray,
    after: np.ndarray,
    before: np.ndarray,
    bits: np.ndarray,
) -> None:
    for start in range(0, len(slots), AHEAD):
        block = range(start, min(start + AHEAD, len(slots)))
        prefetch_homes(new_keys[start : start + AHEAD], entries)
        for i in block:
            prefetch_match(new_keys[i], keys, entries, before)
            prefetch(keys, slots[i])
            prefetch(before, slots[i])
            prefetch(after, slots[i])
        for i in block:
            slot = np.int64(slots[i])
            key = new_keys[i]
            keys[slot] = key
            before[slot] = _NONE
            place = find(key, keys, entries)
            if place < 0:
                place = -place - 1
                after[slot] = _NONE
            else:
                following = entries[place] & SLOT
                after[slot] = following
                before[following] = slot
            mark = tag(mix(key))
            entries[place] = (mark << 32) | slot
            _note(mark, bits)


@kernel
def _probe(
    page_keys: np.ndarray,
    row: int,
    slot: Integer,
    keys: np.ndarray,
    entries: np.ndarray,
    after: np.ndarray,
    bits: np.ndarray,
    found_slots: np.ndarray,
    found_rows: np.ndarray,
) -> tuple[int, int, Integer]:
    found = 0
    room = len(found_slots)
    while row < len(page_keys):
        if slot == _NONE and _noted(tag(mix(page_keys[row])), bits):
            place = find(page_keys[row], keys, entries)
            if place >= 0:
                slot = entries[place] & SLOT
        while slot != _NONE:
            if found == room:
                return found, row, slot
            found_slots[found] = slot
            found_rows[found] = row
            found += 1
            slot = np.int64(after[slot])
        row += 1
    return found, row, slot


@kernel
def _pop(
    page_keys: np.ndarray,
    row: int,
    keys: np.ndarray,
    entries: np.ndarray,
    after: np.ndarray,
    before: np.ndarray,
    bits: np.ndarray,
    found_slots: np.ndarray,
    found_rows: np.ndarray,
    likely: np.ndarray,
    wanted: np.ndarray,
) -> tuple[int, int]:
    """Find and remove; `likely` is room for the rows that pass the filter, `wanted` for a block of their keys."""
    found = 0
    room = len(found_slots)
    while row < len(page_keys):
        stop = min(row + _ROWS, len(page_keys))
        count = 0
        for i in range(row, stop):
            likely[count] = i
            count += _noted(tag(mix(page_keys[i])), bits)
        for start in range(0, count, AHEAD):
            block = likely[start : min(start + AHEAD, count)]
            for i in range(len(block)):
                wanted[i] = page_keys[block[i]]
            prefetch_homes(wanted[: len(block)], entries)
            for i in block:
                prefetch_match(page_keys[i], keys, entries, after)
            for i in block:
                place = find(page_keys[i], keys, entries)
                if place < 0:
                    continue
                slot = entries[place] & SLOT
                while slot != _NONE and found < room:
                    found_slots[found] = slot
                    found_rows[found] = i
                    found += 1
                    slot = np.int64(after[slot])
                if slot != _NONE:  # no more room: the rest of the list stays
                    before[slot] = _NONE
                    entries[place] = (entries[place] & ~SLOT) | slot
                    return found, i
                erase(place, entries)
        row = stop
    return found, row


@kernel
def _delete(slots: np.ndarray, keys: np.ndarray, entries: np.ndarray, after: np.ndarray, before: np.ndarray) -> None:
    for i in range(len(slots)):
        slot = slots[i]
        following = after[slot]
        leading = before[slot]
        if following != _NONE:
            before[following] = leading
        if leading != _NONE:
            after[leading] = following
        else:
            place = find(keys[slot], keys, entries)
            if following != _NONE:
                entries[place] = (entries[place] & ~SLOT) | following
            else:
                erase(place, entries)
