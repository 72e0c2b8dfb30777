"""How kernels are compiled: functions of numpy arrays that numba turns into machine code."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

__all__ = ["Integer", "copy_bytes", "inlined", "kernel"]

_F = TypeVar("_F", bound=Callable[..., Any])
Integer = int | np.integer[Any]

# A kernel works on the arrays that it is given and allocates none, so numba need not count references to them. Counting
# costs two locked additions and many branches at each call: with it, reading an event takes four times as long. `_nrt`
# is an internal option of numba; the version of numba is pinned.
_NO_REFERENCES: Any = {"_nrt": False}


def kernel(function: _F) -> _F:
    """Compile a function of numpy arrays; the machine code is cached beside the source file."""
    return cast("_F", numba.njit(cache=True, **_NO_REFERENCES)(function))


def inlined(function: _F) -> _F:
    """Inline a function into each kernel that calls it, because a call would pass seven words for each array."""
    return cast("_F", numba.njit(cache=True, forceinline=True, **_NO_REFERENCES)(function))


@inlined
def copy_bytes(source: np.ndarray, start: Integer, target: np.ndarray, to: Integer, count: Integer) -> None:
    """Copy bytes. Indices are unsigned, because numba checks at each access whether a signed one is negative."""
    at, place = np.uint64(start), np.uint64(to)
    for i in range(np.uint64(count)):
        target[place + i] = source[at + i]
