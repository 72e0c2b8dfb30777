"""Reads single rows out of a mapped page file: only the bytes of these rows are touched, not their whole pages."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
from semistream import arrow
from semistream.hashing import prefetch
from semistream.kernels import copy_bytes, kernel

__all__ = ["RowReader"]

_NOWHERE = -1
_VALIDITY, _VALUES, _TEXT = range(3)  # a column's buffers; `_VALUES` are offsets if the column has variable width
_AHEAD = 16  # rows that are prefetched


class RowReader:
    """Finds the values of any row by the places of its page's buffers in the file.

    A page is noted when one of its rows is first read. The places take 24 bytes for each column of a page.

    Args:
        file: the mapped file.
        schema: the pages' columns.
        pages: how many pages there are.
        page_rows: rows of a page.
    """

    def __init__(self, file: pa.Buffer, schema: pa.Schema, pages: int, page_rows: int) -> None:
        self._address = file.address
        self._schema = schema
        self._page_rows = page_rows
        self._places = np.full((len(schema), 3, pages), _NOWHERE, dtype=np.int64)
        self._known = np.zeros(pages, dtype=np.bool_)
        self._views = {width: _view(file, width) for width in (1, 2, 4, 8)}

    @staticmethod
    def reads(schema: pa.Schema) -> bool:
        """Return whether all columns are of types whose values can be read one by one."""
        try:
            return all(arrow.is_variable_width(kind) or arrow.fixed_width_dtype(kind) for kind in schema.types)
        except ValueError:
            return False

    def unknown(self, positions: np.ndarray) -> list[int]:
        """Return the pages of rows that have not been noted."""
        pages = positions // self._page_rows
        unknown: list[int] = np.unique(pages[~self._known[pages]]).tolist()
        return unknown

    def note(self, page: int, rows: pa.RecordBatch) -> None:
        """Note where the buffers of a page are."""
        for number, column in enumerate(rows.columns):
            for part, buffer in enumerate(column.buffers()):
                if buffer is not None:
                    self._places[number, part, page] = buffer.address - self._address
        self._known[page] = True

    def fitting(self, positions: np.ndarray, names: Sequence[str], most_bytes: int) -> int:
        """Return how many rows, from the first on, have strings of so many bytes together; at least one."""
        pages, rows = np.divmod(positions, self._page_rows)
        total = np.zeros(len(rows) + 1, dtype=np.int64)
        for number, kind in ((self._schema.get_field_index(name), self._schema.field(name).type) for name in names):
            if arrow.is_variable_width(kind):
                total += self._offsets(self._places[number], kind, pages, rows)[1]
        return max(int(np.searchsorted(total[1:], most_bytes, side="right")), min(len(rows), 1))

    def read(self, positions: np.ndarray, names: Sequence[str]) -> pa.RecordBatch:
        """Gather columns of the rows at some positions; their pages have been noted."""
        pages, rows = np.divmod(positions, self._page_rows)
        fields = [self._schema.field(name) for name in names]
        columns = [self._column(self._schema.get_field_index(field.name), field.type, pages, rows) for field in fields]
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))

    def _column(self, number: int, kind: pa.DataType, pages: np.ndarray, rows: np.ndarray) -> pa.Array:
        places, count = self._places[number], len(rows)
        valid = None
        if self._schema.field(number).nullable:
            valid = np.empty(count, dtype=np.uint8)
            _gather_bits(self._views[1], places[_VALIDITY], pages, rows, valid)
        if arrow.is_variable_width(kind):
            return self._text(places, kind, pages, rows, valid)
        values = np.empty(count, dtype=arrow.fixed_width_dtype(kind))
        if pat.is_boolean(kind):
            _gather_bits(self._views[1], places[_VALUES], pages, rows, values)
        else:
            width = min(values.dtype.itemsize, 8)
            parts = values.view(f"u{width}").reshape(count, values.dtype.itemsize // width)
            _gather(self._views[width], places[_VALUES], pages, rows, parts)
        return arrow.from_fixed_width(kind, values, valid)

    def _text(
        self, places: np.ndarray, kind: pa.DataType, pages: np.ndarray, rows: np.ndarray, valid: np.ndarray | None
    ) -> pa.Array:
        starts, offsets = self._offsets(places, kind, pages, rows)
        data = np.empty(int(offsets[-1]), dtype=np.uint8)
        _copy_texts(self._views[1], places[_TEXT], pages, starts, offsets, data)
        return arrow.from_variable_width(kind, offsets, data, valid)

    def _offsets(
        self, places: np.ndarray, kind: pa.DataType, pages: np.ndarray, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return where each string starts in its page's buffer, and the strings' offsets when they are gathered."""
        width = 8 if pat.is_large_string(kind) or pat.is_large_binary(kind) else 4
        starts, offsets = np.empty(len(rows), dtype=np.int64), np.zeros(len(rows) + 1, dtype=np.int64)
        _measure(self._views[width], places[_VALUES], pages, rows, starts, offsets)
        return starts, offsets


def _view(file: pa.Buffer, width: int) -> np.ndarray:
    """View the file as unsigned integers; Arrow aligns every buffer to 8 bytes."""
    return np.frombuffer(file, dtype=f"u{width}", count=file.size // width)


@kernel
def _gather(view: np.ndarray, places: np.ndarray, pages: np.ndarray, rows: np.ndarray, values: np.ndarray) -> None:
    """Copy values of fixed width; a wide value has two parts."""
    width, parts = view.itemsize, values.shape[1]
    for i in range(len(rows)):
        if i + _AHEAD < len(rows):
            prefetch(view, places[pages[i + _AHEAD]] // width + rows[i + _AHEAD] * parts)
        place = places[pages[i]] // width + rows[i] * parts
        for part in range(parts):
            values[i, part] = view[place + part]


@kernel
def _gather_bits(view: np.ndarray, places: np.ndarray, pages: np.ndarray, rows: np.ndarray, values: np.ndarray) -> None:
    """Copy single bits; a page without the buffer has ones only: none of its values is null."""
    for i in range(len(rows)):
        place = places[pages[i]]
        values[i] = 1 if place == _NOWHERE else (view[place + (rows[i] >> 3)] >> (rows[i] & 7)) & 1


@kernel
def _measure(
    view: np.ndarray,
    places: np.ndarray,
    pages: np.ndarray,
    rows: np.ndarray,
    starts: np.ndarray,
    offsets: np.ndarray,
) -> None:
    """Write where each text starts in its page's buffer, and its offset behind the texts before it."""
    for i in range(len(rows)):
        place = places[pages[i]] // view.itemsize + rows[i]
        starts[i] = view[place]
        offsets[i + 1] = offsets[i] + np.int64(view[place + 1]) - starts[i]


@kernel
def _copy_texts(
    view: np.ndarray, places: np.ndarray, pages: np.ndarray, starts: np.ndarray, offsets: np.ndarray, data: np.ndarray
) -> None:
    for i in range(len(starts)):
        copy_bytes(view, places[pages[i]] + starts[i], data, offsets[i], offsets[i + 1] - offsets[i])
