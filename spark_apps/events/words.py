"""Work on eight bytes of a text at once, as a word whose lowest byte is the first one.

A function that tests each byte returns flags: a byte's top bit is set if the test is true for it. The function's sums
carry nothing into the next byte, or only into bytes after the first flag (H. S. Warren, Hacker's Delight, section 6-1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic
from semistream.kernels import Integer, inlined

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

WIDTH = 8


def each(byte: int) -> np.uint64:
    """Return a word whose eight bytes all are `byte`."""
    return np.uint64(int.from_bytes(bytes([byte]) * WIDTH, "little"))


def padded(text: bytes | pa.Buffer) -> np.ndarray:
    """Return the bytes as an array; if they are fewer than eight, zeros are appended."""
    data = np.frombuffer(text, np.uint8)
    return data if len(data) >= WIDTH else np.concatenate([data, np.zeros(WIDTH - len(data), np.uint8)])


_TOPS = each(0x80)
_ONES, _SPACES, _QUOTES, _BACKSLASHES = each(1), each(ord(" ")), each(ord('"')), each(ord("\\"))
# For a byte below 0x80: adding 0x80 - m sets its top bit if it is at least m, adding 0x7F - n if it is more than n.
_ZEROS = each(ord("0"))
_FROM_0, _ABOVE_9 = each(0x80 - ord("0")), each(0x7F - ord("9"))
_FROM_A, _ABOVE_F = each(0x80 - ord("a")), each(0x7F - ord("f"))
_ALL = np.uint64(2**64 - 1)
_BITS = np.uint64(8)


def _unchecked_word_at(_: Any, array: Any, index: Any) -> Any:  # noqa: ANN401 - numba's types
    """Read the eight bytes at an index, which must all be in the array."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:  # noqa: ANN401
        data = context.make_array(array)(context, builder, arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(64).as_pointer())
        return builder.load(place, align=1)

    return numba.types.uint64(array, index), generate


def _bytes_before(_: Any, flags: Any) -> Any:  # noqa: ANN401 - numba's types
    """Count the bytes before the first flag: eight if there is none."""

    def generate(_context: Any, builder: Any, _: Any, arguments: Any) -> Any:  # noqa: ANN401
        zeros = builder.cttz(arguments[0], ir.IntType(1)(0))
        return builder.lshr(zeros, ir.IntType(64)(3))

    return numba.types.int64(flags), generate


unchecked_word_at: Callable[[np.ndarray, int], np.uint64] = cast("Any", intrinsic(_unchecked_word_at))
bytes_before: Callable[[np.uint64], int] = cast("Any", intrinsic(_bytes_before))


@inlined
def word_at(data: np.ndarray, at: int) -> np.uint64:
    """Return the eight bytes that begin at a place of the array, with zeros for those after its end.

    The array must have at least eight bytes (`padded`).
    """
    place = min(at, len(data) - WIDTH)
    return unchecked_word_at(data, place) >> (_BITS * np.uint64(at - place))


@inlined
def leading(word: np.uint64, count: int) -> np.uint64:
    """Keep the word's first `count` bytes, one to eight, and set the others to zero."""
    return word & (_ALL >> (_BITS * np.uint64(WIDTH - count)))


@inlined
def not_plain(word: np.uint64) -> np.uint64:
    """Flag the bytes that end a plain run of a JSON string: controls, quotes, backslashes, all that is not ASCII.

    Flags after the first one can be wrong.
    """
    quotes, backslashes = word ^ _QUOTES, word ^ _BACKSLASHES
    below = (word - _SPACES) & ~word
    return (below | ((quotes - _ONES) & ~quotes) | ((backslashes - _ONES) & ~backslashes) | word) & _TOPS


@inlined
def not_digits(word: np.uint64) -> np.uint64:
    """Flag the bytes that are not decimal digits; flags after the first one can be wrong."""
    return ~((word + _FROM_0) & ~(word + _ABOVE_9) & ~word) & _TOPS


@inlined
def decimal(word: np.uint64, count: int) -> Integer:
    """Return the number whose digits are the word's first `count` bytes, one to eight."""
    digits = (word - _ZEROS) << (_BITS * np.uint64(WIDTH - count))  # the bytes in front of them become 0
    pairs = (digits * np.uint64(10) + (digits >> np.uint64(8))) & np.uint64(0x00FF_00FF_00FF_00FF)
    fours = (pairs * np.uint64(100) + (pairs >> np.uint64(16))) & np.uint64(0x0000_FFFF_0000_FFFF)
    return np.int64((fours * np.uint64(10_000) + (fours >> np.uint64(32))) & np.uint64(0xFFFF_FFFF))


@inlined
def is_hex(word: np.uint64) -> bool:
    """Return whether all eight bytes are hexadecimal digits in lower case."""
    digits = (word + _FROM_0) & ~(word + _ABOVE_9)
    letters = (word + _FROM_A) & ~(word + _ABOVE_F)
    return bool((digits | letters) & ~word & _TOPS == _TOPS)
