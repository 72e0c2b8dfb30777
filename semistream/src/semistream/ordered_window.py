"""Stream tuples in the order of a value, for conditions that are intervals (MESHJOIN 2007, section 3.3)."""

import numpy as np
from semistream.kernels import Integer, kernel
from semistream.stream_table import Cursor, Found

__all__ = ["OrderedWindow"]


class OrderedWindow:
    """Waiting tuples sorted by value: takes the place of `StreamTable` when master rows match intervals."""

    def __init__(self, slots: int) -> None:
        self.keys = np.zeros(slots, dtype=np.int64)
        self._order = np.zeros(slots, dtype=np.int32)
        self._merged = np.zeros(slots, dtype=np.int32)
        self._gone = np.zeros(slots, dtype=np.bool_)
        self._count = 0

    @property
    def nbytes(self) -> int:
        """Count the bytes of all arrays: fewer than in a `StreamTable`, for which the memory split has room."""
        return self.keys.nbytes + self._order.nbytes + self._merged.nbytes + self._gone.nbytes

    def insert(self, slots: np.ndarray, keys: np.ndarray) -> None:
        """Add the tuples in `slots`."""
        self.keys[slots] = keys
        fresh = slots[np.argsort(keys, kind="stable")]
        _merge(fresh, self.keys, self._order, self._count, self._merged)
        self._order, self._merged = self._merged, self._order
        self._count += len(slots)

    def delete(self, slots: np.ndarray) -> None:
        """Remove tuples."""
        self._gone[slots] = True
        self._count = int(_compact(self._order, self._count, self._gone))
        self._gone[slots] = False

    def probe(
        self, low: np.ndarray, high: np.ndarray, cursor: Cursor, found_slots: np.ndarray, found_rows: np.ndarray
    ) -> Found:
        """Find the tuples within each master row's interval, `low` to `high`; the rest is as in `StreamTable.probe`."""
        found, row, place = _probe(low, high, *cursor, self.keys, self._order[: self._count], found_slots, found_rows)
        return int(found), (int(row), int(place))


@kernel
def _merge(fresh: np.ndarray, keys: np.ndarray, order: np.ndarray, count: int, merged: np.ndarray) -> None:
    i = 0
    j = 0
    for place in range(count + len(fresh)):
        if j == len(fresh) or (i < count and keys[order[i]] <= keys[fresh[j]]):
            merged[place] = order[i]
            i += 1
        else:
            merged[place] = fresh[j]
            j += 1


@kernel
def _compact(order: np.ndarray, count: int, gone: np.ndarray) -> int:
    kept = 0
    for i in range(count):
        if not gone[order[i]]:
            order[kept] = order[i]
            kept += 1
    return kept


@kernel
def _probe(
    low: np.ndarray,
    high: np.ndarray,
    row: int,
    place: Integer,
    keys: np.ndarray,
    order: np.ndarray,
    found_slots: np.ndarray,
    found_rows: np.ndarray,
) -> tuple[int, int, Integer]:
    found = 0
    while row < len(low):
        if place < 0:
            place = _first_not_below(low[row], keys, order)
        while place < len(order) and keys[order[place]] <= high[row]:
            if found == len(found_slots):
                return found, row, place
            found_slots[found] = order[place]
            found_rows[found] = row
            found += 1
            place += 1
        place = -1
        row += 1
    return found, row, place


@kernel
def _first_not_below(value: int, keys: np.ndarray, order: np.ndarray) -> int:
    start = 0
    stop = len(order)
    while start < stop:
        middle = (start + stop) // 2
        if keys[order[middle]] < value:
            start = middle + 1
        else:
            stop = middle
    return start
