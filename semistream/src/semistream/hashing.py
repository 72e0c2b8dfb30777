"""What all hash tables share: the hash function, the search for a key, and prefetching.

A table is an array of entries with open addressing. An entry is `EMPTY`, or packs 31 bits of the key's hash (its tag)
and, in the low 32 bits, the slot that has the key. So an entry can move without reading its key.

Tables are larger than the processor's caches: a kernel would wait for memory at nearly every tuple. It therefore works
in blocks of `AHEAD` tuples: first it prefetches all memory that the block needs, then it processes the block.
"""

from collections.abc import Callable
from typing import Any, cast

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic
from semistream.kernels import Integer, kernel

__all__ = [
    "AHEAD",
    "EMPTY",
    "SLOT",
    "erase",
    "find",
    "home",
    "lacking",
    "mix",
    "prefetch",
    "prefetch_homes",
    "prefetch_match",
    "tag",
]

AHEAD = 64
EMPTY = -1
SLOT = (1 << 32) - 1  # mask: the bits of an entry that have its slot

_M1 = np.uint64(0xFF51AFD7ED558CCD)
_M2 = np.uint64(0xC4CEB9FE1A85EC53)
_S33 = np.uint64(33)


@kernel
def mix(x: Integer) -> np.uint64:
    """Hash 64 bits so that every output bit depends on every input bit (the finaliser of MurmurHash3)."""
    h = np.uint64(x)
    h ^= h >> _S33
    h *= _M1
    h ^= h >> _S33
    h *= _M2
    h ^= h >> _S33
    return h


@kernel
def tag(h: np.uint64) -> np.int64:
    """Return the tag of a hash: its 31 high bits."""
    return np.int64(h >> _S33)


@kernel
def home(mark: Integer, capacity: int) -> Integer:
    """Map a tag to one of `capacity` places; `capacity` need not be a power of two."""
    return (mark * capacity) >> 31


@kernel
def find(key: Integer, keys: np.ndarray, entries: np.ndarray) -> Integer:
    """Return the place of a key's entry, or -place - 1 for the empty place where a new entry belongs."""
    capacity = len(entries)
    mark = tag(mix(key))
    place = home(mark, capacity)
    while True:
        entry = entries[place]
        if entry == EMPTY:
            return -place - 1
        if entry >> 32 == mark and keys[entry & SLOT] == key:
            return place
        place += 1
        if place == capacity:
            place = 0


def lacking(wanted: np.ndarray, keys: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """Return for each wanted key whether it is not in the table."""
    lacks = np.empty(len(wanted), dtype=np.bool_)
    _lacking(wanted, keys, entries, lacks)
    return lacks


@kernel
def _lacking(wanted: np.ndarray, keys: np.ndarray, entries: np.ndarray, lacks: np.ndarray) -> None:
    for i in range(len(wanted)):
        lacks[i] = find(wanted[i], keys, entries) < 0


@kernel
def erase(place: Integer, entries: np.ndarray) -> None:
    """Empty a place, and move later entries of its run back, so that no search stops before it reaches them."""
    capacity = len(entries)
    hole = place
    while True:
        place += 1
        if place == capacity:
            place = 0
        entry = np.int64(entries[place])
        if entry == EMPTY:
            break
        wanted = home(entry >> 32, capacity)
        if _distance(wanted, place, capacity) >= _distance(hole, place, capacity):
            entries[hole] = entry
            hole = place
    entries[hole] = EMPTY


@kernel
def _distance(start: Integer, stop: Integer, capacity: int) -> Integer:
    """Count the places from `start` forward to `stop`; after the last place of the table comes the first."""
    return stop - start if stop >= start else stop - start + capacity


def _prefetch(_: Any, array: Any, index: Any) -> Any:  # noqa: ANN401 - numba's types
    """Prefetch `array[index]`: the processor loads it into its caches while the kernel continues."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:  # noqa: ANN401
        data = context.make_array(array)(context, builder, arguments[0]).data
        address, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        place = builder.bitcast(builder.gep(data, [arguments[1]]), address)
        kind = ir.FunctionType(ir.VoidType(), [address, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [address], kind)
        builder.call(function, [place, number(0), number(3), number(1)])  # a read, high locality, data cache
        return context.get_dummy_value()

    return numba.types.void(array, index), generate


prefetch: Callable[[np.ndarray, Integer], None] = cast("Any", intrinsic(_prefetch))


@kernel
def prefetch_homes(wanted: np.ndarray, entries: np.ndarray) -> None:
    """Prefetch for each key the entry at its home, the place that its hash selects."""
    for key in wanted:
        prefetch(entries, home(tag(mix(key)), len(entries)))


@kernel
def prefetch_match(key: Integer, keys: np.ndarray, entries: np.ndarray, beside: np.ndarray) -> None:
    """Prefetch a key's slot in `keys` and in `beside`, if the entry at its home has the key's tag."""
    mark = tag(mix(key))
    entry = entries[home(mark, len(entries))]
    if entry >> 32 == mark:
        prefetch(keys, entry & SLOT)
        prefetch(beside, entry & SLOT)
