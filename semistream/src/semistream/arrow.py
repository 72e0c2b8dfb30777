"""Convert Arrow arrays to numpy arrays and back. Values are shared, not copied, except for booleans."""

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

__all__ = [
    "fixed_width",
    "fixed_width_dtype",
    "from_fixed_width",
    "from_variable_width",
    "is_variable_width",
    "validity",
    "variable_width",
]

_DTYPES: dict[int, np.dtype] = {
    8: np.dtype("u1"),
    16: np.dtype("u2"),
    32: np.dtype("u4"),
    64: np.dtype("u8"),
    128: np.dtype("c16"),
}


def is_variable_width(kind: pa.DataType) -> bool:
    """Return whether the type is a string or binary of variable length."""
    return bool(pat.is_string(kind) or pat.is_large_string(kind) or pat.is_binary(kind) or pat.is_large_binary(kind))


def variable_width(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets, as int64, and the bytes of a string or binary column."""
    _, offsets_buffer, data_buffer = column.buffers()
    offsets = np.zeros(len(column) + 1, dtype=np.int64)
    if offsets_buffer is not None and len(column):
        wide = pat.is_large_string(column.type) or pat.is_large_binary(column.type)
        stored = np.frombuffer(offsets_buffer, dtype=np.int64 if wide else np.int32)
        offsets[:] = stored[column.offset : column.offset + len(column) + 1]
    data = np.empty(0, dtype=np.uint8) if data_buffer is None else np.frombuffer(data_buffer, dtype=np.uint8)
    data.flags.writeable = False  # in every case, so that numba compiles each kernel for one type of array
    return offsets, data


def fixed_width_dtype(kind: pa.DataType) -> np.dtype:
    """Return the numpy type with the width of `kind`; a boolean takes one byte."""
    if pat.is_boolean(kind):
        return np.dtype(np.uint8)
    if (pat.is_primitive(kind) or pat.is_decimal(kind) or pat.is_fixed_size_binary(kind)) and kind.bit_width in _DTYPES:
        return _DTYPES[kind.bit_width]
    raise ValueError(
        f"column type must be string or binary, or have a fixed width of 1, 2, 4, 8 or 16 bytes, got {kind}: "
        "cast or drop the column"
    )


def fixed_width(column: pa.Array, dtype: np.dtype) -> np.ndarray:
    """View a column of fixed width as a numpy array of `dtype`."""
    if pat.is_boolean(column.type):
        column = column.cast(pa.uint8())
    return np.frombuffer(column.buffers()[1], dtype=dtype)[column.offset : column.offset + len(column)]


def validity(column: pa.Array) -> np.ndarray:
    """Return for each value whether it is not null."""
    valid: np.ndarray = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def from_fixed_width(kind: pa.DataType, values: np.ndarray, valid: np.ndarray | None) -> pa.Array:
    """Wrap values as an Arrow array; `valid` is None if no value is null."""
    if pat.is_boolean(kind):
        return pa.Array.from_buffers(pa.uint8(), len(values), [_bitmap(valid), pa.py_buffer(values)]).cast(kind)
    return pa.Array.from_buffers(kind, len(values), [_bitmap(valid), pa.py_buffer(values)])


def from_variable_width(kind: pa.DataType, offsets: np.ndarray, data: np.ndarray, valid: np.ndarray | None) -> pa.Array:
    """Wrap byte strings as an Arrow array; `offsets` are int64, and `valid` is None if no value is null."""
    if not (pat.is_large_string(kind) or pat.is_large_binary(kind)):
        offsets = offsets.astype(np.int32)
    buffers = [_bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers)


def _bitmap(valid: np.ndarray | None) -> pa.Buffer | None:
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
