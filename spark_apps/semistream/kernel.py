"""How kernels are compiled, and the one hash function all hash tables use."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

F = TypeVar("F", bound=Callable[..., Any])
Integer = int | np.integer[Any]

_M1 = np.uint64(0xFF51AFD7ED558CCD)
_M2 = np.uint64(0xC4CEB9FE1A85EC53)
_S33 = np.uint64(33)


def kernel(function: F) -> F:
    """Compile a function of numpy arrays; the machine code is cached beside the source file."""
    return cast("F", numba.njit(cache=True)(function))


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
def distance(start: Integer, stop: Integer, capacity: int) -> Integer:
    """Count the places from one to another that follows it in a table, around its end."""
    return stop - start if stop >= start else stop - start + capacity
