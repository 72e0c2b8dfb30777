"""How kernels are compiled, and what all hash tables share: the hash function, and how to wait for memory once.

A kernel works on arrays that it is given and makes none. So numba need not count references to them, which it does
with two locked additions at each call and many a branch: reading an event took four times as long with them.

Tables are larger than the processor's caches, so that a kernel waits for memory at nearly every tuple. It goes through
tuples in blocks of `BLOCK`: first it asks for all the memory the block will need, then it works on it.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])
Integer = int | np.integer[Any]

BLOCK = 64
_NO_REFERENCES: Any = {"_nrt": False}  # numba's own option, of the version that is pinned
EMPTY = -1  # entry of a table that is free; others are a tag and, in the low 32 bits, a slot

_M1 = np.uint64(0xFF51AFD7ED558CCD)
_M2 = np.uint64(0xC4CEB9FE1A85EC53)
_S33 = np.uint64(33)


def kernel(function: F) -> F:
    """Compile a function of numpy arrays; the machine code is cached beside the source file."""
    return cast("F", numba.njit(cache=True, **_NO_REFERENCES)(function))


def inlined(function: F) -> F:
    """Compile a function that is a part of the kernels that call it: a call costs seven words for each array."""
    return cast("F", numba.njit(cache=True, forceinline=True, **_NO_REFERENCES)(function))


@kernel
def mix(x: Integer) -> np.uint64:
    """Scramble 64 bits so that every output bit depends on every input bit (the finaliser of MurmurHash3)."""
    h = np.uint64(x)
    h ^= h >> _S33
    h *= _M1
    h ^= h >> _S33
    h *= _M2
    h ^= h >> _S33
    return h


@kernel
def tag(h: np.uint64) -> np.int64:
    """Take 31 bits of a hash: what a table keeps of it beside the slot."""
    return np.int64(h >> _S33)


@kernel
def home(mark: Integer, capacity: int) -> Integer:
    """Map a tag onto `capacity` places, which need not be a power of two."""
    return (mark * capacity) >> 31


@kernel
def _distance(start: Integer, stop: Integer, capacity: int) -> Integer:
    """Count the places from one to another that follows it in a table, around its end."""
    return stop - start if stop >= start else stop - start + capacity


@kernel
def erase(place: Integer, entries: np.ndarray) -> None:
    """Empty a place of a table, and move later entries of its run back, so that no search stops short of them."""
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


def _prefetch(_: Any, array: Any, index: Any) -> Any:  # noqa: ANN401 - numba's types
    """Ask for the memory of `array[index]` without waiting for it."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:  # noqa: ANN401
        data = context.make_array(array)(context, builder, arguments[0]).data
        address, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        place = builder.bitcast(builder.gep(data, [arguments[1]]), address)
        kind = ir.FunctionType(ir.VoidType(), [address, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [address], kind)
        builder.call(function, [place, number(0), number(3), number(1)])  # to be read, kept close, data
        return context.get_dummy_value()

    return numba.types.void(array, index), generate


prefetch: Callable[[np.ndarray, Integer], None] = cast("Any", intrinsic(_prefetch))
