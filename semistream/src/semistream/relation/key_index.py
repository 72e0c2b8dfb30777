"""The index of R from 64-bit key to row position: a hash table with open addressing, in memory or in a mapped file.

The index has `PARTITIONS` parts of equal size. The high bits of a key's hash select its part. So a writer can build one
part after the other in bounded memory.

Different keys may have equal fingerprints, and a key may repeat. So a 64-bit key may occur several times, at most
`MOST_ROWS`. A key with that many rows is not unique, and may have more rows behind these.
"""

import zlib
from collections.abc import Sequence

import numpy as np
from semistream.hashing import AHEAD, home, mix, prefetch, tag
from semistream.kernels import kernel

__all__ = [
    "MOST_ROWS",
    "PARTITIONS",
    "CheckedIndex",
    "KeyIndex",
    "fill_part",
    "indexed",
    "part_checksum",
    "part_of",
    "part_size",
]

PARTITIONS = 64
MOST_ROWS = 64  # rows with the same 64-bit key in the index; it leaves out further ones
_BITS = np.uint64(6)
_SHIFT = np.uint64(58)
_EMPTY = -1


class KeyIndex:
    """Positions in R by key, in arrays of `PARTITIONS` equal parts."""

    def __init__(self, keys: np.ndarray, positions: np.ndarray) -> None:
        self._keys = keys
        self._positions = positions

    @classmethod
    def build(cls, keys: np.ndarray) -> "KeyIndex":
        """Build an index in memory; `keys` has the key of each row of R, in order."""
        rows = indexed(keys)
        keys = keys[rows]
        part = part_of(keys)
        size = part_size(int(np.bincount(part, minlength=PARTITIONS).max(initial=0)))
        places, positions = np.zeros(size * PARTITIONS, dtype=np.int64), np.full(size * PARTITIONS, _EMPTY)
        for p in range(PARTITIONS):
            span = slice(p * size, (p + 1) * size)
            members = part == p
            fill_part(keys[members], rows[members], places[span], positions[span])
        return cls(places, positions)

    def positions(self, keys: np.ndarray) -> np.ndarray:
        """Return for each key the position of a row that has it, or -1."""
        found = np.empty(len(keys), dtype=np.int64)
        _find_each(keys, self._keys, self._positions, found)
        return found

    def all_positions(self, key: int) -> np.ndarray:
        """Return the positions of all indexed rows with a key."""
        found = np.empty(MOST_ROWS, dtype=np.int64)
        return found[: _find_all(key, self._keys, self._positions, found)]

    def repeated_keys(self) -> np.ndarray:
        """Return the 64-bit keys that several rows have, each once."""
        size, found = len(self._keys) // PARTITIONS, []
        for start in range(0, size * PARTITIONS, size):
            keys, repeated = self._keys[start : start + size], np.zeros(size, dtype=np.bool_)
            _find_repeated(keys, self._positions[start : start + size], repeated)
            found.append(keys[repeated])
        return np.unique(np.concatenate(found))


class CheckedIndex(KeyIndex):
    """An index in a file. The first use of a part compares the part with its checksum."""

    def __init__(self, keys: np.ndarray, positions: np.ndarray, checksums: Sequence[int], name: str) -> None:
        super().__init__(keys, positions)
        self._checksums = checksums
        self._name = name
        self._unchecked = np.ones(PARTITIONS, dtype=np.bool_)

    def positions(self, keys: np.ndarray) -> np.ndarray:
        """Return for each key the position of a row that has it, or -1."""
        self._check_parts_of(keys)
        return super().positions(keys)

    def all_positions(self, key: int) -> np.ndarray:
        """Return the positions of all indexed rows with a key."""
        self._check_parts_of(np.array([key]))
        return super().all_positions(key)

    def verify(self) -> None:
        """Compare every part with its checksum."""
        for part in range(PARTITIONS):
            self._check(part)

    def _check_parts_of(self, keys: np.ndarray) -> None:
        if self._unchecked.any():
            parts = np.unique(part_of(keys))
            for part in parts[self._unchecked[parts]].tolist():
                self._check(part)
                self._unchecked[part] = False

    def _check(self, part: int) -> None:
        size = len(self._keys) // PARTITIONS
        span = slice(part * size, (part + 1) * size)
        if part_checksum(self._keys[span], self._positions[span]) != self._checksums[part]:
            raise ValueError(f"index part {part} of {self._name} must match its checksum: build the file again")


def indexed(keys: np.ndarray) -> np.ndarray:
    """Return the rows that belong in the index, in order: the first `MOST_ROWS` of each key."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    beyond = np.zeros(len(keys), dtype=np.bool_)
    beyond[MOST_ROWS:] = ordered[MOST_ROWS:] == ordered[:-MOST_ROWS]
    return np.sort(order[~beyond])


def part_checksum(keys: np.ndarray, positions: np.ndarray) -> int:
    """Compute the checksum of a part of the index."""
    return zlib.crc32(positions.data, zlib.crc32(keys.data))


def part_size(most: int) -> int:
    """Return the number of places in each part if the fullest part has `most` keys: 1.5 times as many, plus 8."""
    return most + most // 2 + 8


def part_of(keys: np.ndarray) -> np.ndarray:
    """Return the part of the index that each key belongs to."""
    parts = np.empty(len(keys), dtype=np.int64)
    _part_of(keys, parts)
    return parts


@kernel
def _part_of(keys: np.ndarray, parts: np.ndarray) -> None:
    for i in range(len(keys)):
        parts[i] = np.int64(mix(keys[i]) >> _SHIFT)


@kernel
def fill_part(new_keys: np.ndarray, new_positions: np.ndarray, keys: np.ndarray, positions: np.ndarray) -> None:
    """Add keys and their positions to the arrays of the part that they belong to."""
    for i in range(len(new_keys)):
        place = home(tag(mix(new_keys[i]) << _BITS), len(keys))
        while positions[place] != _EMPTY:
            place += 1
            if place == len(keys):
                place = 0
        keys[place] = new_keys[i]
        positions[place] = new_positions[i]


@kernel
def _find_each(wanted: np.ndarray, keys: np.ndarray, positions: np.ndarray, found: np.ndarray) -> None:
    size = len(keys) // PARTITIONS
    for first in range(0, len(wanted), AHEAD):
        for key in wanted[first : first + AHEAD]:
            h = mix(key)
            place = np.int64(h >> _SHIFT) * size + home(tag(h << _BITS), size)
            prefetch(keys, place)
            prefetch(positions, place)
        for i in range(first, min(first + AHEAD, len(wanted))):
            h = mix(wanted[i])
            start = np.int64(h >> _SHIFT) * size
            place = home(tag(h << _BITS), size)
            found[i] = _EMPTY
            while positions[start + place] != _EMPTY:
                if keys[start + place] == wanted[i]:
                    found[i] = positions[start + place]
                    break
                place += 1
                if place == size:
                    place = 0


@kernel
def _find_all(key: int, keys: np.ndarray, positions: np.ndarray, found: np.ndarray) -> int:
    """Write the positions of all indexed rows with a key into `found`, and return their number."""
    size = len(keys) // PARTITIONS
    h = mix(key)
    start = np.int64(h >> _SHIFT) * size
    place = home(tag(h << _BITS), size)
    count = 0
    while positions[start + place] != _EMPTY and count < len(found):
        if keys[start + place] == key:
            found[count] = positions[start + place]
            count += 1
        place += 1
        if place == size:
            place = 0
    return count


@kernel
def _find_repeated(keys: np.ndarray, positions: np.ndarray, repeated: np.ndarray) -> None:
    """Mark in `repeated` each place whose key a search finds at an earlier place."""
    for i in range(len(keys)):
        if positions[i] != _EMPTY:
            place = home(tag(mix(keys[i]) << _BITS), len(keys))
            while place != i:
                if keys[place] == keys[i]:
                    repeated[i] = True
                    break
                place += 1
                if place == len(keys):
                    place = 0
