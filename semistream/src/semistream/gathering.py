"""Gathers all rows of frequent keys of R, for a front stage in front of MESHJOIN when keys of R repeat.

The front stage answers a hit with all rows of the key (CHYBRIDJOIN 2017, figure 5g, has a key N times in R). MESHJOIN
reads R in a cycle, without an index. So all rows of a key are known once each page has been read since the key was
chosen. Until then the rows are hidden in H_R. When slots run out, the keys that were chosen last are left out. So is a
key if the strings of one of its rows found no room, or if it has more than `MOST_ROWS` rows.
"""

import numpy as np
from semistream.front_stage import FrontStage
from semistream.hashing import EMPTY, SLOT, erase, find, lacking, mix, tag
from semistream.kernels import kernel
from semistream.relation.base import Page
from semistream.tuple_cache import NONE

__all__ = ["MOST_ROWS", "Gathering"]

MOST_ROWS = 64  # of a key; a hit puts out its rows one after the other
_LEFT_OUT = 0  # instead of a frequency
_NO_VICTIM = 2**30  # the frequency of slots that have nothing to overwrite
_FIRST, _COUNT = range(2)


class Gathering:
    """The keys that are being gathered: a queue in the order in which they were chosen.

    Args:
        front_stage: has the rows, and shows them to the stream when a key is complete.
        slots: rows that can be hidden in it at a time.
    """

    def __init__(self, front_stage: FrontStage, slots: int) -> None:
        self._front_stage = front_stage
        self._keys = np.zeros(slots, dtype=np.int64)
        self._entries = np.full(2 * slots, EMPTY, dtype=np.int64)  # from key to place in the queue
        self._since = np.zeros(slots, dtype=np.int32)  # the page at which a key was chosen
        self._f = np.zeros(slots, dtype=np.int32)  # stream tuples that waited for it then, or `_LEFT_OUT`
        self._head = np.full(slots, NONE, dtype=np.int32)  # its rows' slots in H_R, a chain
        self._rows = np.zeros(slots, dtype=np.int32)
        self._queue = np.zeros(2, dtype=np.int64)
        self._hidden = 0
        self._share = 0  # keys that may still be chosen at this page

    BYTES_PER_SLOT = 8 + 2 * 8 + 4 * 4

    @property
    def nbytes(self) -> int:
        """Count the bytes of all arrays."""
        return sum(array.nbytes for array in (*self._arrays, self._since, self._queue))

    def arrive(self, number: int, pages: int) -> None:
        """Come to a page: show the keys that were chosen here a cycle ago, and allot it a share of the free slots."""
        self._show(self._complete(number))
        free = len(self._keys) - self._hidden
        self._share = free * (number + 1) // pages - free * number // pages

    def choose(self, page: Page, number: int, matched: np.ndarray) -> None:
        """Choose the page's most frequent keys among the frequent ones, as many as the page may.

        Args:
            page: the page in the disk buffer.
            number: its number.
            matched: for each match the row of the page; equal rows are adjacent.
        """
        rows, f = self._front_stage.frequent(matched)
        keys, first = np.unique(page.keys[rows], return_index=True)
        new = np.flatnonzero(self._front_stage.cache.lacks(keys) & lacking(keys, self._keys, self._entries))
        f = f[first[new]]
        best = np.argsort(-f, kind="stable")[: min(self._share, len(self._keys) - int(self._queue[_COUNT]))]
        self._share -= len(best)
        _choose(keys[new[best]], f[best], number, self._queue, self._since, *self._arrays)

    def collect(self, page: Page) -> None:
        """Hide the page's rows of all keys that are being gathered in H_R."""
        cache = self._front_stage.cache
        rows = self._find_rows(page)
        while (lacking_slots := len(rows) - (len(self._keys) - self._hidden)) > 0:
            self._leave_out_newest(lacking_slots)
            rows = self._find_rows(page)
        slots = cache.free_slots(len(rows))
        put = cache.hide(page, rows, slots)
        self._front_stage.recorder.frequency[slots[:put]] = _NO_VICTIM
        self._hidden += put
        _chain(page.keys[rows], slots[:put], cache.after, *self._arrays)
        if put < len(slots):  # no room for strings: make some for later rows
            _, victims = self._victims(np.full(len(slots) - put, _NO_VICTIM, dtype=np.int32))
            self._remove(victims)

    def forget(self) -> None:
        """Forget all keys, because R may have new rows of them; also those that the stream meets already."""
        self._discard(self._complete(None))
        cache = self._front_stage.cache
        self._remove(np.flatnonzero(cache.shown(np.arange(cache.slots))))

    @property
    def _arrays(self) -> tuple[np.ndarray, ...]:
        return self._keys, self._entries, self._f, self._head, self._rows

    def _complete(self, number: int | None) -> np.ndarray:
        """Take the keys that were chosen at a page off the queue, or all keys; return their places."""
        places = self._places()
        if number is not None:
            places = places[: np.argmin(np.append(self._since[places], -1) == number)]
        self._queue[:] = (self._queue[_FIRST] + len(places)) % len(self._keys), self._queue[_COUNT] - len(places)
        _erase(self._keys[places], self._keys, self._entries)
        return places

    def _find_rows(self, page: Page) -> np.ndarray:
        """Return the page's rows of the keys that are being gathered."""
        rows = np.empty(len(page.keys), dtype=np.int64)
        return rows[: _find_rows(page.keys, self._keys, self._entries, self._f, rows)]

    def _leave_out_newest(self, slots: int) -> None:
        """Take the keys that were chosen last off the queue, until they have given back so many slots."""
        newest = self._places()[::-1]
        newest = newest[: 1 + np.searchsorted(np.cumsum(self._rows[newest]), slots)]
        self._queue[_COUNT] -= len(newest)
        _erase(self._keys[newest], self._keys, self._entries)
        self._discard(newest)

    def _places(self) -> np.ndarray:
        """Return the places of the queue, the first key's place first."""
        places: np.ndarray = (self._queue[_FIRST] + np.arange(self._queue[_COUNT])) % len(self._keys)
        return places

    def _show(self, places: np.ndarray) -> None:
        """Let the stream meet complete keys. If H_R is full, each row overwrites one that is not more frequent."""
        cache = self._front_stage.cache
        places, left_out = places[self._f[places] != _LEFT_OUT], places[self._f[places] == _LEFT_OUT]
        self._discard(left_out)
        of, slots = self._rows_of(places)
        f = self._f[places][of]
        if not cache.has_room(len(slots)):
            admitted, victims = self._victims(f)
            whole = np.bincount(of[admitted], minlength=len(places)) == self._rows[places]
            self._remove(victims[whole[of[admitted]]])
            self._discard(places[~whole])
            places, slots, f = places[whole], slots[whole[of]], f[whole[of]]
        cache.show(self._head[places], slots)
        self._front_stage.recorder.frequency[slots] = f
        self._hidden -= len(slots)

    def _discard(self, places: np.ndarray) -> None:
        """Free the slots of keys' rows."""
        _, slots = self._rows_of(places)
        self._front_stage.cache.free(slots)
        self._hidden -= len(slots)

    def _rows_of(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the slots of all rows of keys, and beside each which key it is."""
        heads = self._head[places]
        some = np.flatnonzero(heads != NONE)
        parts = [(some[:0], heads[:0]), *self._front_stage.cache.chains(some, heads[some])]
        return np.concatenate([of for of, _ in parts]), np.concatenate([slots for _, slots in parts])

    def _victims(self, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Choose rows that the stream meets for rows of frequency `f`; return which of these get one, and the slots."""
        recorder = self._front_stage.recorder
        admitted, victims = recorder.victims(f)
        shown = self._front_stage.cache.shown(victims)
        recorder.frequency[victims[~shown]] = _NO_VICTIM
        return admitted[shown], victims[shown]

    def _remove(self, slots: np.ndarray) -> None:
        """Remove the keys of slots that the stream meets; the hand of the clock passes by the slots that this frees."""
        self._front_stage.recorder.frequency[self._front_stage.cache.remove(slots)] = _NO_VICTIM


@kernel
def _choose(
    chosen: np.ndarray,
    frequency: np.ndarray,
    number: int,
    queue: np.ndarray,
    since: np.ndarray,
    keys: np.ndarray,
    entries: np.ndarray,
    f: np.ndarray,
    head: np.ndarray,
    rows: np.ndarray,
) -> None:
    """Append keys to the queue; they are not in it."""
    for i in range(len(chosen)):
        place = (queue[_FIRST] + queue[_COUNT]) % len(keys)
        queue[_COUNT] += 1
        entries[-find(chosen[i], keys, entries) - 1] = (tag(mix(chosen[i])) << 32) | place
        keys[place] = chosen[i]
        f[place] = frequency[i]
        head[place] = NONE
        rows[place] = 0
        since[place] = number


@kernel
def _find_rows(page_keys: np.ndarray, keys: np.ndarray, entries: np.ndarray, f: np.ndarray, rows: np.ndarray) -> int:
    """Write the rows of a page whose keys are in the queue and not left out; return how many there are."""
    found = 0
    for i in range(len(page_keys)):
        at = find(page_keys[i], keys, entries)
        if at >= 0 and f[entries[at] & SLOT] != _LEFT_OUT:
            rows[found] = i
            found += 1
    return found


@kernel
def _chain(
    row_keys: np.ndarray,
    slots: np.ndarray,
    after: np.ndarray,
    keys: np.ndarray,
    entries: np.ndarray,
    f: np.ndarray,
    head: np.ndarray,
    rows: np.ndarray,
) -> None:
    """Add the rows in `slots` to their keys' chains; leave out the keys of the other rows, and those with too many."""
    for i in range(len(row_keys)):
        place = entries[find(row_keys[i], keys, entries)] & SLOT
        if i < len(slots):
            after[slots[i]] = head[place]
            head[place] = slots[i]
            rows[place] += 1
        if i >= len(slots) or rows[place] > MOST_ROWS:
            f[place] = _LEFT_OUT


@kernel
def _erase(erased: np.ndarray, keys: np.ndarray, entries: np.ndarray) -> None:
    for key in erased:
        erase(find(key, keys, entries), entries)
