"""Events as JSON bytes, a whole batch in one kernel.

The text is that of `json.dumps` with compact separators for the schema in events.py (a test compares them). A
malformed event is a valid one with one of the faults in MALFORMED.
"""

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Int64s = NDArray[np.int64]

# The faults, numbered from 1. The comments say what a consumer finds.
MALFORMED: Final = (
    "truncated",  # the second half of the JSON is missing
    "not_json",  # plain text
    "missing_key",  # no product_id
    "null_key",  # product_id is null
    "text_key",  # product_id is a word
    "text_quantity",  # quantity is a word
    "impossible_time",  # sold_at has a month 13
    "not_utf8",  # a byte that is invalid in UTF-8
    "empty",  # no bytes
)
_TRUNCATED, _NOT_JSON, _MISSING_KEY, _NULL_KEY, _TEXT_KEY, _TEXT_QUANTITY, _IMPOSSIBLE_TIME, _NOT_UTF8, _EMPTY = range(
    1, len(MALFORMED) + 1
)

EVENT_ID_CHARACTERS = 36
LONGEST_EVENT = 192  # 36 for the id, at most 19 for each integer, 24 for the time, 73 for the names


def _ascii(text: str) -> Bytes:
    return np.frombuffer(text.encode(), np.uint8)


_ID, _PRODUCT, _QUANTITY = _ascii('{"event_id":"'), _ascii('","product_id":'), _ascii(',"quantity":')
_QUANTITY_ALONE, _STORE, _SOLD_AT = _ascii('","quantity":'), _ascii(',"store_id":'), _ascii(',"sold_at":"')
_END, _NULL, _WORD, _TEXT = _ascii('"}'), _ascii("null"), _ascii('"unknown"'), _ascii("this is not JSON: ")
_HEX = _ascii("0123456789abcdef")
_DIGIT_0, _DASH, _COLON, _DOT, _T, _Z, _NEWLINE = (np.uint8(ord(c)) for c in "0-:.TZ\n")
_VERSION_7, _VARIANT = 0x7, 0x2
_NO_UTF8 = np.uint8(0xFF)
_DAY_MILLIS = 86_400_000
_DATE_CHARACTERS, _MONTH_AT = len("YYYY-MM-DD"), len("YYYY-")


@njit(cache=True)
def _put(out: Bytes, at: int, text: Bytes) -> int:
    for i in range(len(text)):
        out[at + i] = text[i]
    return at + len(text)


@njit(cache=True)
def _put_padded(out: Bytes, at: int, number: int, digits: int) -> int:
    for i in range(digits - 1, -1, -1):
        out[at + i] = _DIGIT_0 + number % 10
        number //= 10
    return at + digits


@njit(cache=True)
def _put_integer(out: Bytes, at: int, number: int) -> int:
    digits, rest = 1, number
    while rest >= 10:  # noqa: PLR2004 - decimal
        rest //= 10
        digits += 1
    return _put_padded(out, at, number, digits)


@njit(cache=True)
def _put_hex(out: Bytes, at: int, number: int, digits: int) -> int:
    for i in range(digits - 1, -1, -1):
        out[at + i] = _HEX[number & 15]
        number >>= 4
    return at + digits


@njit(cache=True)
def _put_event_id(out: Bytes, at: int, sold_at: int, number: int, tag: int) -> int:
    """Write a UUID of version 7 (RFC 9562): 48 bits of time, 42 bits of event number, 32 bits of the run's tag."""
    at = _put_hex(out, at, sold_at >> 16, 8)
    out[at] = _DASH
    at = _put_hex(out, at + 1, sold_at & 0xFFFF, 4)
    out[at] = _DASH
    at = _put_hex(out, at + 1, (_VERSION_7 << 12) | ((number >> 30) & 0xFFF), 4)
    out[at] = _DASH
    at = _put_hex(out, at + 1, (_VARIANT << 14) | ((number >> 16) & 0x3FFF), 4)
    out[at] = _DASH
    at = _put_hex(out, at + 1, number & 0xFFFF, 4)
    return _put_hex(out, at, tag, 8)


def dates(sold_at: Int64s) -> tuple[int, Bytes]:
    """Return a batch's first day, in days since 1970, and YYYY-MM-DD of each day from the first to the last."""
    first, last = int(sold_at.min()) // _DAY_MILLIS, int(sold_at.max()) // _DAY_MILLIS
    days = np.arange(first, last + 1).astype("datetime64[D]")
    text = np.datetime_as_string(days).astype(f"S{_DATE_CHARACTERS}")
    return first, text.view(np.uint8)


@njit(cache=True)
def _put_time(out: Bytes, at: int, millis: int, fault: int, first_day: int, dates: Bytes) -> int:
    """Write a time as ISO 8601 in UTC with milliseconds."""
    day, milli_of_day = millis // _DAY_MILLIS, millis % _DAY_MILLIS
    date = (day - first_day) * _DATE_CHARACTERS
    for i in range(_DATE_CHARACTERS):
        out[at + i] = dates[date + i]
    if fault == _IMPOSSIBLE_TIME:
        _put_padded(out, at + _MONTH_AT, 13, 2)
    at += _DATE_CHARACTERS
    out[at] = _T
    at = _put_padded(out, at + 1, milli_of_day // 3_600_000, 2)
    out[at] = _COLON
    at = _put_padded(out, at + 1, milli_of_day // 60_000 % 60, 2)
    out[at] = _COLON
    at = _put_padded(out, at + 1, milli_of_day // 1_000 % 60, 2)
    out[at] = _DOT
    at = _put_padded(out, at + 1, milli_of_day % 1_000, 3)
    out[at] = _Z
    return at + 1


@njit(cache=True)
def _put_body(
    out: Bytes, at: int, product: int, quantity: int, store: int, sold_at: int, fault: int, first_day: int, dates: Bytes
) -> int:
    if fault == _MISSING_KEY:
        at = _put(out, at, _QUANTITY_ALONE)
    else:
        at = _put(out, at, _PRODUCT)
        if fault == _NULL_KEY:
            at = _put(out, at, _NULL)
        elif fault == _TEXT_KEY:
            at = _put(out, at, _WORD)
        else:
            at = _put_integer(out, at, product)
        at = _put(out, at, _QUANTITY)
    at = _put(out, at, _WORD) if fault == _TEXT_QUANTITY else _put_integer(out, at, quantity)
    at = _put_integer(out, _put(out, at, _STORE), store)
    return _put(out, _put_time(out, _put(out, at, _SOLD_AT), sold_at, fault, first_day, dates), _END)


@njit(cache=True, nogil=True)
def encode_events(
    numbers: Int64s,
    products: Int64s,
    quantities: Int64s,
    stores: Int64s,
    sold_at: Int64s,
    faults: Bytes,
    tag: int,
    first_day: int,
    dates: Bytes,
    out: Bytes,
    ends: Int64s,
) -> None:
    """Write each event's text and a newline into `out`, and the newline's index into `ends`.

    `first_day` and `dates` come from the function `dates`.
    """
    at = 0
    for i in range(len(numbers)):
        start, fault = at, faults[i]
        if fault == _NOT_JSON:
            at = _put_event_id(out, _put(out, at, _TEXT), sold_at[i], numbers[i], tag)
        elif fault != _EMPTY:
            at = _put_event_id(out, _put(out, at, _ID), sold_at[i], numbers[i], tag)
            at = _put_body(out, at, products[i], quantities[i], stores[i], sold_at[i], fault, first_day, dates)
            if fault == _TRUNCATED:
                at = start + (at - start) // 2
            elif fault == _NOT_UTF8:
                out[start + len(_ID)] = _NO_UTF8
        ends[i] = at
        out[at] = _NEWLINE
        at += 1


@njit(cache=True, nogil=True)
def encode_event_ids(numbers: Int64s, sold_at: Int64s, tag: int, out: Bytes) -> None:
    """Write the event ids into `out`, one after the other."""
    for i in range(len(numbers)):
        _put_event_id(out, i * EVENT_ID_CHARACTERS, sold_at[i], numbers[i], tag)
