"""H_S, the multi-hash table of stream tuples: one key, any number of tuples (000 section 4.1, 003 section 3.2).

Each different key has one entry in an open-addressed table; the tuples of a key form a doubly linked list, so that a
tuple is removed in constant time even when all wait for the same key. An entry packs 31 bits of the hash beside the
slot of the list's first tuple, so that entries move without a look at their keys.

Most master rows of a page have no waiting tuples. A filter of 16 bits a slot, small enough for the processor's cache,
dismisses nearly all of them: each key sets the bit that its hash chooses. Bits of keys that have gone stay, until so
many have gone that all bits are set anew.
"""

import numpy as np

from semistream.kernel import BLOCK, Integer, erase, home, kernel, mix, prefetch, tag

Cursor = tuple[int, int]  # key that is next, tuple of its list that is next
Found = tuple[int, Cursor]
START: Cursor = (0, -1)

_NONE = -1
_SLOT = (1 << 32) - 1
_FILTER_BYTES = 2  # a slot
_ROWS = 1024  # of a page that are filtered at a time


class StreamTable:
    """Tuples by key. A tuple is known by the slot it lives in."""

    def __init__(self, slots: int) -> None:
        self.keys = np.zeros(slots, dtype=np.int64)
        self._entries = np.full(2 * slots, _NONE, dtype=np.int64)
        self._after = np.full(slots, _NONE, dtype=np.int32)
        self._before = np.full(slots, _NONE, dtype=np.int32)
        self._filter = np.zeros(_FILTER_BYTES * slots, dtype=np.uint8)
        self._gone = 0  # tuples since all bits were set anew

    @staticmethod
    def bytes_per_slot() -> int:
        """Say what a tuple costs."""
        return 8 + 2 * 8 + 4 + 4 + _FILTER_BYTES

    @property
    def nbytes(self) -> int:
        """Count the bytes of all arrays."""
        links = self._after.nbytes + self._before.nbytes
        return self.keys.nbytes + self._entries.nbytes + links + self._filter.nbytes

    def insert(self, slots: np.ndarray, keys: np.ndarray) -> None:
        """Add tuples that live in `slots`."""
        _insert(slots, keys, self.keys, self._entries, self._after, self._before, self._filter)

    def probe(self, keys: np.ndarray, cursor: Cursor, found_slots: np.ndarray, found_rows: np.ndarray) -> Found:
        """Find the tuples of each master row's key, as many as there is room for in `found_slots`.

        Goes on at `cursor`, which is `START` at first. Gives the number found and the cursor to go on from; its first
        part is the number of keys when all are done.
        """
        arrays = (self.keys, self._entries, self._after, self._filter, found_slots, found_rows)
        found, row, slot = _probe(keys, *cursor, *arrays)
        return int(found), (int(row), int(slot))

    def take(self, keys: np.ndarray, cursor: Cursor, found_slots: np.ndarray, found_rows: np.ndarray) -> Found:
        """Find tuples as `probe` does, and remove them from the table."""
        arrays = (self.keys, self._entries, self._after, self._before, self._filter, found_slots, found_rows)
        found, row = _take(keys, cursor[0], *arrays, np.empty(_ROWS, dtype=np.int64), np.empty(BLOCK, dtype=np.int64))
        self._forget(found)
        return found, (row, _NONE)

    def delete(self, slots: np.ndarray) -> None:
        """Remove tuples."""
        _delete(slots, self.keys, self._entries, self._after, self._before)
        self._forget(len(slots))

    def _forget(self, gone: int) -> None:
        """Count tuples that have gone, and set the filter anew when half as many have gone as there are slots."""
        self._gone += gone
        if 2 * self._gone > len(self.keys):
            _fill(self._entries, self._filter)
            self._gone = 0


@kernel
def _note(mark: Integer, bits: np.ndarray) -> None:
    """Set the bit of a hash."""
    bit = home(mark, 8 * len(bits))
    bits[bit >> 3] |= np.uint8(1 << (bit & 7))


@kernel
def _noted(mark: Integer, bits: np.ndarray) -> Integer:
    """Give the bit of a hash: 0 if no tuple has it."""
    bit = home(mark, 8 * len(bits))
    return (bits[bit >> 3] >> (bit & 7)) & 1  # type: ignore[no-any-return]


@kernel
def _fill(entries: np.ndarray, bits: np.ndarray) -> None:
    """Set the bits of the keys that are there, and no others."""
    bits[:] = 0
    for entry in entries:
        if entry != _NONE:
            _note(entry >> 32, bits)


@kernel
def _find(key: Integer, keys: np.ndarray, entries: np.ndarray) -> Integer:
    """Give the entry of a key, or where it would be put as -place - 1."""
    capacity = len(entries)
    mark = tag(mix(key))
    place = home(mark, capacity)
    while True:
        entry = entries[place]
        if entry == _NONE:
            return -place - 1
        if entry >> 32 == mark and keys[entry & _SLOT] == key:
            return place
        place += 1
        if place == capacity:
            place = 0


@kernel
def _prefetch_entries(wanted: np.ndarray, entries: np.ndarray) -> None:
    """Ask for the homes of keys."""
    for key in wanted:
        prefetch(entries, home(tag(mix(key)), len(entries)))


@kernel
def _prefetch_tuple(key: Integer, keys: np.ndarray, entries: np.ndarray, links: np.ndarray) -> None:
    """Ask for the tuple at a key's home if it is likely to have the key."""
    mark = tag(mix(key))
    entry = entries[home(mark, len(entries))]
    if entry >> 32 == mark:
        prefetch(keys, entry & _SLOT)
        prefetch(links, entry & _SLOT)


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
    for start in range(0, len(slots), BLOCK):
        block = range(start, min(start + BLOCK, len(slots)))
        _prefetch_entries(new_keys[start : start + BLOCK], entries)
        for i in block:
            _prefetch_tuple(new_keys[i], keys, entries, before)
            prefetch(keys, slots[i])
            prefetch(before, slots[i])
            prefetch(after, slots[i])
        for i in block:
            slot = np.int64(slots[i])
            key = new_keys[i]
            keys[slot] = key
            before[slot] = _NONE
            place = _find(key, keys, entries)
            if place < 0:
                place = -place - 1
                after[slot] = _NONE
            else:
                first = entries[place] & _SLOT
                after[slot] = first
                before[first] = slot
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
            place = _find(page_keys[row], keys, entries)
            if place >= 0:
                slot = entries[place] & _SLOT
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
def _take(
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
        for start in range(0, count, BLOCK):
            block = likely[start : min(start + BLOCK, count)]
            for i in range(len(block)):
                wanted[i] = page_keys[block[i]]
            _prefetch_entries(wanted[: len(block)], entries)
            for i in block:
                _prefetch_tuple(page_keys[i], keys, entries, after)
            for i in block:
                place = _find(page_keys[i], keys, entries)
                if place < 0:
                    continue
                slot = entries[place] & _SLOT
                while slot != _NONE and found < room:
                    found_slots[found] = slot
                    found_rows[found] = i
                    found += 1
                    slot = np.int64(after[slot])
                if slot != _NONE:  # no more room: what is left of the list stays
                    before[slot] = _NONE
                    entries[place] = (entries[place] & ~_SLOT) | slot
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
            place = _find(keys[slot], keys, entries)
            if following != _NONE:
                entries[place] = (entries[place] & ~_SLOT) | following
            else:
                erase(place, entries)
