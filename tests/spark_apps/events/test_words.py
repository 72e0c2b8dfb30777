"""Functions on eight bytes at once return the same as a loop over the bytes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from semistream.kernels import Integer, kernel

from spark_apps.events.words import (
    WIDTH,
    bytes_before,
    decimal,
    is_hex,
    leading,
    not_digits,
    not_plain,
    padded,
    word_at,
)

WORDS = st.binary(min_size=WIDTH, max_size=WIDTH) | st.text(' !"/09:@AF[\\]`afgz\x1f\x7f', min_size=8, max_size=8).map(
    str.encode
)


@kernel
def _plain_bytes(data: np.ndarray, at: int) -> int:
    return bytes_before(not_plain(word_at(data, at)))


@kernel
def _digits(data: np.ndarray, at: int) -> int:
    return bytes_before(not_digits(word_at(data, at)))


@kernel
def _is_hex(data: np.ndarray) -> bool:
    return is_hex(word_at(data, 0))


@kernel
def _decimal(data: np.ndarray, count: int) -> Integer:
    return decimal(word_at(data, 0), count)


@kernel
def _write(data: np.ndarray, at: int, count: int, out: np.ndarray) -> None:
    word = leading(word_at(data, at), count)
    for i in range(WIDTH):
        out[i] = (word >> np.uint64(8 * i)) & np.uint64(0xFF)


def _run(text: bytes, ends: bytes) -> int:
    return next((i for i, byte in enumerate(text) if byte in ends), len(text))


@given(WORDS)
def test_a_plain_run_ends_at_a_control_a_quote_a_backslash_or_what_is_not_ascii(text: bytes) -> None:
    """A plain run ends exactly at its first control character, quote, backslash or byte outside of ASCII."""
    ends = bytes([*range(0x20), *b'"\\', *range(0x80, 0x100)])
    assert _plain_bytes(padded(text), 0) == _run(text, ends)


@given(WORDS)
def test_digits_end_at_the_first_other_byte(text: bytes) -> None:
    """Any of the 256 bytes that is not a digit ends a run of digits."""
    assert _digits(padded(text), 0) == _run(text, bytes(set(range(0x100)) - set(b"0123456789")))


@given(WORDS | st.text("0123456789abcdef", min_size=8, max_size=8).map(str.encode))
def test_hexadecimal_digits_are_those_in_lower_case(text: bytes) -> None:
    """A word is hexadecimal only if all eight bytes are lower-case digits."""
    assert _is_hex(padded(text)) == (set(text) <= set(b"0123456789abcdef"))


@given(st.integers(1, 8).flatmap(lambda width: st.text("0123456789", min_size=width, max_size=width)), st.binary())
def test_up_to_eight_digits_are_their_number(digits: str, behind: bytes) -> None:
    """Up to eight digits are read as their number, whatever bytes follow them."""
    assert _decimal(padded(digits.encode() + behind), len(digits)) == int(digits)


@given(st.binary(max_size=20), st.data())
def test_behind_the_end_there_are_zeros(text: bytes, data: st.DataObject) -> None:
    """A word that reaches beyond the end of the array is filled with zeros."""
    array = padded(text)
    at, count = data.draw(st.integers(0, len(array) - 1)), data.draw(st.integers(1, WIDTH))
    out = np.empty(WIDTH, np.uint8)
    _write(array, at, count, out)
    assert bytes(out) == bytes(array)[at : at + count].ljust(WIDTH, b"\0")
