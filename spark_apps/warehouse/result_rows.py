"""Read a query's rows as Arrow, as fast as the server sends them: 10M rows must not cost a Python object each.

pymysql logs in and sends the query. Kernels cut the rows out of the bytes that its socket receives (MariaDB's "Result
Set Packets": a row is one packet, a value its length and its text). A buffer bounds the memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pymysql.constants import CR, FIELD_TYPE, FLAG
from pymysql.err import OperationalError, raise_mysql_exception
from semistream.kernels import Integer, kernel

from foundation.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from foundation.connections import Connection

BUFFER_BYTES = 1 << 20
HEADER = 4  # a packet's length in three bytes, and its sequence number
LONGEST = 0xFFFFFF  # a packet of this length continues in the next one
BINARY = 63  # the number of the character set `binary`
MORE, END, FAILED, TOO_LONG = range(4)

INTEGERS = {
    FIELD_TYPE.TINY: (pa.int8(), pa.uint8()),
    FIELD_TYPE.SHORT: (pa.int16(), pa.uint16()),
    FIELD_TYPE.YEAR: (pa.int16(), pa.uint16()),
    FIELD_TYPE.INT24: (pa.int32(), pa.uint32()),
    FIELD_TYPE.LONG: (pa.int32(), pa.uint32()),
    FIELD_TYPE.LONGLONG: (pa.int64(), pa.uint64()),
}
OTHERS = {
    FIELD_TYPE.FLOAT: pa.float32(),
    FIELD_TYPE.DOUBLE: pa.float64(),
    FIELD_TYPE.DATE: pa.date32(),
    FIELD_TYPE.DATETIME: pa.timestamp("us"),
    FIELD_TYPE.TIMESTAMP: pa.timestamp("us"),
}
DECIMALS = (FIELD_TYPE.DECIMAL, FIELD_TYPE.NEWDECIMAL)
DECIMAL_DIGITS = 38


def read_rows(
    connection: Connection, query: str, values: Sequence[object] = (), buffer_bytes: int = BUFFER_BYTES
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Run a query and return the schema of its rows, and the rows in batches.

    The connection can do nothing else before the last batch is read. Dropping the iterator earlier closes it.

    Raises:
        TableError: Arrow cannot represent a value, for example the date 0000-00-00.
    """
    connection.query(connection.cursor().mogrify(query, values or None), unbuffered=True)
    result = connection._result  # type: ignore[attr-defined]  # noqa: SLF001  # pymysql itself gives rows only one by one; its version is pinned
    schema = pa.schema([pa.field(field.name, _type(field), not field.flags & FLAG.NOT_NULL) for field in result.fields])
    return schema, _batches(connection, result, schema, buffer_bytes)


def read_table(connection: Connection, query: str, values: Sequence[object] = ()) -> pa.Table:
    """Run a query and return all its rows."""
    schema, batches = read_rows(connection, query, values)
    return pa.Table.from_batches(list(batches), schema)


def _type(field: object) -> pa.DataType:
    kind, flags, scale, charset = (getattr(field, name) for name in ("type_code", "flags", "scale", "charsetnr"))
    if kind in INTEGERS:
        return INTEGERS[kind][bool(flags & FLAG.UNSIGNED)]
    if kind in DECIMALS:
        return pa.decimal128(DECIMAL_DIGITS, scale)
    if kind in OTHERS:
        return OTHERS[kind]
    return pa.binary() if charset == BINARY and kind != FIELD_TYPE.TIME else pa.string()


def _batches(connection: Connection, result: object, schema: pa.Schema, buffer_bytes: int) -> Iterator[pa.RecordBatch]:
    buffer = np.empty(buffer_bytes, np.uint8)
    sizes = np.zeros(len(schema), np.int64)
    used: Integer = 0
    filled, rows, state = 0, 0, MORE
    tables = [field.org_table for field in result.fields]  # type: ignore[attr-defined]
    socket = connection._rfile  # type: ignore[attr-defined]  # noqa: SLF001  # see read_rows
    try:
        while state == MORE:
            received = socket.read1(len(buffer) - filled)
            if not received:
                raise OperationalError(CR.CR_SERVER_LOST, "the warehouse closed the connection before the last row")
            buffer[filled : filled + len(received)] = np.frombuffer(received, np.uint8)
            filled += len(received)
            complete, used, state = _measure(buffer[:filled], used, sizes)
            rows += complete
            if state == MORE and filled < len(buffer):
                continue  # wait for a full buffer: a TLS record of 16 kB has too few rows for a batch
            if rows:
                yield _cut(buffer, rows, sizes, schema, tables)
            if state == FAILED:
                raise_mysql_exception(buffer[used + HEADER : filled].tobytes())
            if state == TOO_LONG:
                raise OperationalError(
                    CR.CR_NET_PACKET_TOO_LARGE,
                    "a row of the result must be shorter than 16 MB: leave its longest column out",
                )
            buffer[: filled - used] = buffer[used:filled].copy()
            filled, used, rows, sizes[:] = filled - used, 0, 0, 0
            if filled == len(buffer):
                buffer = np.concatenate([buffer, np.empty_like(buffer)])
    finally:
        result.unbuffered_active = False  # type: ignore[attr-defined]
        result.connection = None  # type: ignore[attr-defined]
        if state != END:
            connection._force_close()  # type: ignore[attr-defined]  # noqa: SLF001  # the socket still has rows


def _cut(buffer: np.ndarray, rows: int, sizes: np.ndarray, schema: pa.Schema, tables: Sequence[str]) -> pa.RecordBatch:
    """Make a batch of the first rows in a buffer; for each column, `sizes` has its bytes and `tables` its table."""
    offsets = np.zeros((len(schema), rows + 1), np.int32)
    present = np.empty((len(schema), rows), np.bool_)
    data = np.empty(sizes.sum(), np.uint8)
    starts = np.cumsum(sizes) - sizes
    _fill(buffer, rows, offsets, present, data, starts)
    pieces = (data[start : start + size] for start, size in zip(starts, sizes, strict=True))
    columns = [_column(*each) for each in zip(offsets, present, pieces, schema, tables, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(offsets: np.ndarray, present: np.ndarray, data: np.ndarray, field: pa.Field, table: str) -> pa.Array:
    missing = int(len(present) - present.sum())
    valid = pa.py_buffer(np.packbits(present, bitorder="little")) if missing else None
    kind = field.type if pa.types.is_binary(field.type) else pa.string()
    buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(data)]
    try:
        return pa.Array.from_buffers(kind, len(present), buffers, missing).cast(field.type)
    except pa.ArrowInvalid as error:
        raise TableError(
            f"column `{field.name}` of `{table}` must have values that Arrow can represent: {error}",
            "Replace them in the table by NULL or by valid values, or leave the column out of the pipeline's file.",
        ) from error


@kernel
def _length(buffer: np.ndarray, at: Integer) -> tuple[Integer, Integer]:
    """Return the length of a value, -1 for NULL, and where the value begins."""
    first = buffer[at]
    if first < 0xFB:  # noqa: PLR2004  # the protocol's own numbers, here and below
        return np.int64(first), at + 1
    if first == 0xFB:  # noqa: PLR2004
        return np.int64(-1), at + 1
    width = 2 if first == 0xFC else (3 if first == 0xFD else 8)  # noqa: PLR2004
    length = np.int64(0)
    for i in range(width):
        length |= np.int64(buffer[at + 1 + i]) << (8 * i)
    return length, at + 1 + width


@kernel
def _measure(buffer: np.ndarray, at: Integer, sizes: np.ndarray) -> tuple[int, Integer, int]:
    """Count the complete rows from `at` on and add each column's bytes to `sizes`.

    Returns:
        The number of rows, where they end, and what follows them: MORE, END, FAILED or TOO_LONG.
    """
    rows = 0
    while at + HEADER < len(buffer):
        packet = np.int64(buffer[at]) | np.int64(buffer[at + 1]) << 8 | np.int64(buffer[at + 2]) << 16
        first = buffer[at + HEADER]
        if packet == LONGEST:
            return rows, at, TOO_LONG
        if at + HEADER + packet > len(buffer):
            break
        if first == 0xFF:  # noqa: PLR2004  # the packet of an error
            return rows, at, FAILED
        if first == 0xFE and packet < 9:  # noqa: PLR2004  # the packet after the last row
            return rows, at, END
        at += HEADER
        for field in range(len(sizes)):
            length, at = _length(buffer, at)
            if length > 0:
                sizes[field] += length
                at += length
        rows += 1
    return rows, at, MORE


@kernel
def _fill(  # noqa: PLR0913, PLR0917  # a kernel gets plain arrays
    buffer: np.ndarray, rows: int, offsets: np.ndarray, present: np.ndarray, data: np.ndarray, starts: np.ndarray
) -> None:
    """Copy the values of complete rows into columns; column i begins at `starts[i]` in `data`."""
    at: Integer = 0
    for row in range(rows):
        at += HEADER
        for field in range(len(offsets)):
            length, at = _length(buffer, at)
            present[field, row] = length >= 0
            length = max(length, 0)
            to = offsets[field, row]
            offsets[field, row + 1] = to + length
            to += starts[field]
            for i in range(length):
                data[to + i] = buffer[at + i]
            at += length
