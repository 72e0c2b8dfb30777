"""Eight bytes at once say what the bytes say one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from semistream.kernels import Integer, kernel

from spark_apps.events.words import (
    WIDTH,
    decimal,
    first,
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
def _first_not_plain(data: np.ndarray, at: int) -> int:
    return first(not_plain(word_at(data, at)))


@kernel
def _first_no_digit(data: np.ndarray, at: int) -> int:
    return first(not_digits(word_at(data, at)))


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
    """The first of them is told exactly."""
    ends = bytes([*range(0x20), *b'"\\', *range(0x80, 0x100)])
    assert _first_not_plain(padded(text), 0) == _run(text, ends)


@given(WORDS)
def test_digits_end_where_they_end(text: bytes) -> None:
    """At the first byte that is none."""
    assert _first_no_digit(padded(text), 0) == _run(text, bytes(set(range(0x100)) - set(b"0123456789")))


@given(WORDS | st.text("0123456789abcdef", min_size=8, max_size=8).map(str.encode))
def test_hexadecimal_digits_are_those_in_lower_case(text: bytes) -> None:
    """All eight, or it is not."""
    assert _is_hex(padded(text)) == (set(text) <= set(b"0123456789abcdef"))


@given(st.integers(1, 8).flatmap(lambda width: st.text("0123456789", min_size=width, max_size=width)), st.binary())
def test_up_to_eight_digits_are_their_number(digits: str, behind: bytes) -> None:
    """Whatever stands behind them."""
    assert _decimal(padded(digits.encode() + behind), len(digits)) == int(digits)


@given(st.binary(max_size=20), st.data())
def test_behind_the_end_there_are_zeros(text: bytes, data: st.DataObject) -> None:
    """From any place of the array, and whatever part of the word is taken."""
    array = padded(text)
    at, count = data.draw(st.integers(0, len(array) - 1)), data.draw(st.integers(1, WIDTH))
    out = np.empty(WIDTH, np.uint8)
    _write(array, at, count, out)
    assert bytes(out) == bytes(array)[at : at + count].ljust(WIDTH, b"\0")
