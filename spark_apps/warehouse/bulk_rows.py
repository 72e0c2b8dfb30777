"""Format Arrow columns as rows of MariaDB's binary protocol, for the command COM_STMT_BULK_EXECUTE.

A row is its values one after the other, each after a byte that marks NULL or a value. Numbers have eight bytes, times
are split into their parts, all else is text or bytes after its length ("Binary Protocol (Prepared Statements)" in
MariaDB's manual). The server reads such rows faster than the same rows as a file of text; no value is escaped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import types as arrow_types
from pymysql.constants import FIELD_TYPE
from semistream.kernels import Integer, kernel

from spark_apps.warehouse.civil_days import civil_date

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_BYTES = 4 * 2**20  # of rows in a command; a server takes 16 MB by default
MOST_ROWS = 65_535  # in a command: a server keeps no more warnings
_UNSIGNED = 128
_VALUE, _NULL = 0, 1
_WORD_BYTES = 1 + 8
_TIME_PARTS = 11  # year in two bytes, month, day, hour, minute, second, microsecond in four
_TIME_BYTES = 1 + 1 + _TIME_PARTS
_NO_YEAR = 0xFFFF  # for years that do not fit two bytes: the server refuses all after 9999
_NO_NULLS = np.empty(0, np.bool_)
_SECOND, _DAY = 1_000_000, 86_400_000_000  # in microseconds
_U1, _U8, _BYTE = np.uint64(1), np.uint64(8), np.uint64(0xFF)


class _Column(NamedTuple):
    """A column that is ready to be written.

    Attributes:
        kind: its type and flags in the protocol.
        widths: the bytes of each row's value; one number if all rows have the same.
        nulls: True where a row has no value; empty if all rows have one.
        write: the kernel that writes it.
        values: the kernel's last arguments.
    """

    kind: tuple[int, int]
    widths: np.ndarray | int
    nulls: np.ndarray
    write: Callable[..., None]
    values: tuple[np.ndarray, ...]


def parameter_types(schema: pa.Schema) -> bytes:
    """Return the types of the columns, as the server gets them before the rows."""
    return bytes(number for field in schema for number in _column(pa.array([], field.type)).kind)


def bulk_rows(rows: pa.RecordBatch, most_bytes: int = MOST_BYTES) -> list[tuple[int, memoryview]]:
    """Format rows in pieces, and return the number of rows and the bytes of each piece.

    A piece has at most `most_bytes` and `MOST_ROWS`, but at least one row.
    """
    columns = [_column(column) for column in rows.columns]
    widths = np.zeros(rows.num_rows, np.int64)
    for column in columns:
        widths += column.widths if not column.nulls.size else np.where(column.nulls, 1, column.widths)
    ends = np.cumsum(widths)
    out = np.empty(ends[-1] if len(ends) else 0, np.uint8)
    cursors = (ends - widths).astype(np.uint64)
    for column in columns:
        column.write(out, cursors, column.nulls, *column.values)
    pieces: list[tuple[int, memoryview]] = []
    row, start = 0, 0
    while row < rows.num_rows:
        fit = int(np.searchsorted(ends, start + most_bytes, side="right"))
        next_row = max(row + 1, min(fit, row + MOST_ROWS))
        stop = int(ends[next_row - 1])
        pieces.append((next_row - row, out[start:stop].data))
        row, start = next_row, stop
    return pieces


def _column(column: pa.Array) -> _Column:
    kind = column.type
    nulls = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else _NO_NULLS
    if arrow_types.is_timestamp(kind):
        moments = column.cast(pa.timestamp("us")).view(pa.int64())
        return _Column((FIELD_TYPE.DATETIME, 0), _TIME_BYTES, nulls, _write_times, (_values_of(moments, np.int64),))
    if arrow_types.is_integer(kind) or arrow_types.is_boolean(kind):
        unsigned = arrow_types.is_unsigned_integer(kind)
        words = _values_of(column.cast(pa.uint64() if unsigned else pa.int64()), np.uint64)
        return _Column((FIELD_TYPE.LONGLONG, _UNSIGNED if unsigned else 0), _WORD_BYTES, nulls, _write_words, (words,))
    if arrow_types.is_floating(kind):
        words = _values_of(column.cast(pa.float64()), np.uint64)
        return _Column((FIELD_TYPE.DOUBLE, 0), _WORD_BYTES, nulls, _write_words, (words,))
    binary = arrow_types.is_binary(kind) or arrow_types.is_fixed_size_binary(kind)
    texts = column.cast(pa.binary() if binary else pa.string())
    offsets = _values_of(texts, np.int32, more=1)
    data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    lengths = np.diff(offsets).astype(np.int64)
    protocol = (FIELD_TYPE.BLOB if binary else FIELD_TYPE.STRING, 0)
    return _Column(protocol, 1 + _length_bytes(lengths) + lengths, nulls, _write_texts, (offsets, data))


def _values_of(column: pa.Array, kind: type[np.generic], more: int = 0) -> np.ndarray:
    """Return an array's values or offsets (its second buffer) without a copy; for a null, the value is undefined."""
    buffer = column.buffers()[1]
    if buffer is None or not len(column):
        return np.zeros(more, kind)
    return np.frombuffer(buffer, kind)[column.offset : column.offset + len(column) + more]


def _length_bytes(lengths: np.ndarray) -> np.ndarray:
    """Return how many bytes the protocol takes to write each length."""
    count: np.ndarray = np.select([lengths < 251, lengths < 2**16, lengths < 2**24], [1, 3, 4], 9)  # noqa: PLR2004  # the protocol's own numbers
    return count


# Indices are unsigned: for a signed one numba checks whether it counts from the end, which costs more than the copying.
# `cursors` has the place in `out` of each row's next value.


@kernel
def _has_value(out: np.ndarray, cursors: np.ndarray, nulls: np.ndarray, row: int) -> bool:
    """Write the byte that marks NULL or a value, and return whether there is a value."""
    null = len(nulls) > 0 and nulls[row]
    out[cursors[row]] = _NULL if null else _VALUE
    cursors[row] += _U1
    return not null


@kernel
def _write_number(out: np.ndarray, at: np.uint64, number: Integer, width: int) -> None:
    """Write an integer in `width` bytes, little-endian."""
    for i in range(np.uint64(width)):
        out[at + i] = (np.uint64(number) >> (_U8 * i)) & _BYTE


@kernel
def _write_words(out: np.ndarray, cursors: np.ndarray, nulls: np.ndarray, words: np.ndarray) -> None:
    """Write values of eight bytes, each at its row's cursor, and advance it, as the other writers do."""
    for row in range(len(cursors)):
        if _has_value(out, cursors, nulls, row):
            _write_number(out, cursors[row], words[row], 8)
            cursors[row] += _U8


@kernel
def _write_times(out: np.ndarray, cursors: np.ndarray, nulls: np.ndarray, moments: np.ndarray) -> None:
    for row in range(len(cursors)):
        if not _has_value(out, cursors, nulls, row):
            continue
        days = moments[row] // _DAY
        rest = moments[row] - days * _DAY
        seconds = rest // _SECOND
        year, month, day = civil_date(days)
        year = year if 0 <= year <= _NO_YEAR else _NO_YEAR
        to = cursors[row]
        for part, width in (
            (_TIME_PARTS, 1), (year, 2), (month, 1), (day, 1),
            (seconds // 3600, 1), (seconds // 60 % 60, 1), (seconds % 60, 1), (rest % _SECOND, 4),
        ):  # fmt: skip
            _write_number(out, to, part, width)
            to += np.uint64(width)
        cursors[row] = to


@kernel
def _write_texts(
    out: np.ndarray, cursors: np.ndarray, nulls: np.ndarray, offsets: np.ndarray, data: np.ndarray
) -> None:
    for row in range(len(cursors)):
        if not _has_value(out, cursors, nulls, row):
            continue
        to, start, stop = cursors[row], np.uint64(offsets[row]), np.uint64(offsets[row + 1])
        length = stop - start
        if length < 251:  # noqa: PLR2004  # the protocol's own numbers, here and below
            out[to] = length
            to += _U1
        else:
            width = 2 if length < 2**16 else (3 if length < 2**24 else 8)
            out[to] = 0xFC if width == 2 else (0xFD if width == 3 else 0xFE)  # noqa: PLR2004
            _write_number(out, to + _U1, length, width)
            to += _U1 + np.uint64(width)
        for i in range(length):
            out[to + i] = data[start + i]
        cursors[row] = to + length
