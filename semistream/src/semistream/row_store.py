"""Rows in memory that is allocated once: the stream tuples that wait in H_S, and the master rows cached in H_R.

A row lives in a slot. Columns of one width share one array, in which a row's values are side by side. Strings and
binaries are cut into blocks of `BLOCK_BYTES` in one heap that all columns share. `_next` chains the blocks of a value,
and the free blocks.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from semistream import arrow
from semistream.kernels import copy_bytes, kernel

__all__ = ["BLOCK_BYTES", "RowStore"]

BLOCK_BYTES = 32


class RowStore:
    """A fixed number of slots for rows of one schema.

    Attributes:
        schema: the rows' columns.
        ids: a 64-bit number for each slot, chosen by the caller.
    """

    def __init__(self, schema: pa.Schema, slots: int, heap_blocks: int) -> None:
        self.schema = schema
        self.ids = np.zeros(slots, dtype=np.int64)
        self._valid = np.zeros((slots, sum(field.nullable for field in schema)), dtype=np.bool_)
        self._ever_null = [False] * len(schema)
        self._nullable = {i: n for n, i in enumerate(i for i, field in enumerate(schema) if field.nullable)}
        self._variable = {
            i: _Variable(field.type, slots) for i, field in enumerate(schema) if arrow.is_variable_width(field.type)
        }
        dtypes = {i: arrow.fixed_width_dtype(f.type) for i, f in enumerate(schema) if i not in self._variable}
        self._groups = [
            _Group([i for i in dtypes if dtypes[i] == dtype], dtype, slots) for dtype in sorted(set(dtypes.values()))
        ]
        blocks = heap_blocks if self._variable else 0
        self._heap = np.zeros(blocks * BLOCK_BYTES, dtype=np.uint8)
        self._next = np.arange(1, blocks + 1, dtype=np.int32)
        self._free_list = np.array([0, blocks], dtype=np.int64)  # the first free block, the number of free blocks

    @staticmethod
    def bytes_per_slot(schema: pa.Schema) -> int:
        """Return the bytes that a slot takes, without its strings."""
        return 8 + sum(
            (8 if arrow.is_variable_width(f.type) else arrow.fixed_width_dtype(f.type).itemsize) + int(f.nullable)
            for f in schema
        )

    @staticmethod
    def bytes_per_block(schema: pa.Schema) -> int:
        """Return the bytes that a heap block takes: 0 when the schema has no strings."""
        return BLOCK_BYTES + 4 if any(arrow.is_variable_width(f.type) for f in schema) else 0

    @property
    def nbytes(self) -> int:
        """Count the bytes of all arrays."""
        heap = self._heap.nbytes + self._next.nbytes + self._free_list.nbytes
        columns = sum(g.values.nbytes for g in self._groups) + sum(v.nbytes for v in self._variable.values())
        return self.ids.nbytes + self._valid.nbytes + heap + columns

    @property
    def free_blocks(self) -> int:
        """Count the free heap blocks."""
        return int(self._free_list[1])

    @property
    def heap_blocks(self) -> int:
        """Count all heap blocks."""
        return len(self._next)

    def blocks_needed(self, batch: pa.RecordBatch) -> np.ndarray:
        """Count the heap blocks that each row would take; an empty array when the schema has no strings."""
        if not self._variable:
            return np.empty(0, dtype=np.int64)
        needed = np.zeros(batch.num_rows, dtype=np.int64)
        for i in self._variable:
            offsets, _ = arrow.variable_width(batch.column(i))
            needed += (np.diff(offsets) + BLOCK_BYTES - 1) // BLOCK_BYTES
        return needed

    def put(self, batch: pa.RecordBatch, rows: np.ndarray, slots: np.ndarray, ids: np.ndarray) -> None:
        """Copy rows of a batch into slots. The caller checks that slots and heap blocks are free."""
        self.ids[slots] = ids
        for group in self._groups:
            for n, i in enumerate(group.columns):
                group.values[slots, n] = arrow.fixed_width(batch.column(i), group.values.dtype)[rows]
        for i, column in self._variable.items():
            offsets, data = arrow.variable_width(batch.column(i))
            _put(offsets, data, rows, slots, column.head, column.length, self._heap, self._next, self._free_list)
        for i, n in self._nullable.items():
            if batch.column(i).null_count:
                self._ever_null[i] = True
                self._valid[slots, n] = arrow.validity(batch.column(i))[rows]
            else:
                self._valid[slots, n] = True

    def take(self, slots: np.ndarray) -> list[pa.Array]:
        """Gather the rows in slots as Arrow columns."""
        columns: list[pa.Array] = [None] * len(self.schema)
        for group in self._groups:
            gathered = np.empty((len(group.columns), len(slots)), dtype=group.values.dtype)
            _gather(group.values, slots, gathered)
            for n, i in enumerate(group.columns):
                columns[i] = arrow.from_fixed_width(self.schema.types[i], gathered[n], self._validity(i, slots))
        for i in self._variable:
            columns[i] = self._take_variable(i, slots)
        return columns

    def take_columns(self, names: Iterable[str], slots: np.ndarray) -> list[pa.Array]:
        """Gather some columns of the rows in slots."""
        columns = self.take(slots)
        return [columns[self.schema.get_field_index(name)] for name in names]

    def identify(self, slots: np.ndarray) -> np.ndarray:
        """Return the ids of the rows in slots."""
        return self.ids.take(slots)

    def release(self, slots: np.ndarray) -> None:
        """Free the heap blocks of the rows in slots."""
        for column in self._variable.values():
            _release(slots, column.head, column.length, self._next, self._free_list)

    def _take_variable(self, i: int, slots: np.ndarray) -> pa.Array:
        column = self._variable[i]
        offsets = np.zeros(len(slots) + 1, dtype=np.int64)
        np.cumsum(column.length[slots], out=offsets[1:])
        data = np.empty(int(offsets[-1]), dtype=np.uint8)
        _gather_bytes(slots, offsets, data, column.head, self._heap, self._next)
        return arrow.from_variable_width(column.kind, offsets, data, self._validity(i, slots))

    def _validity(self, i: int, slots: np.ndarray) -> np.ndarray | None:
        return self._valid[slots, self._nullable[i]] if self._ever_null[i] else None


class _Group:
    """Columns of one width, side by side."""

    def __init__(self, columns: list[int], dtype: np.dtype, slots: int) -> None:
        self.columns = columns
        self.values = np.zeros((slots, len(columns)), dtype=dtype)


class _Variable:
    """A string or binary column: the first heap block of each value, and its length."""

    def __init__(self, kind: pa.DataType, slots: int) -> None:
        self.kind = kind
        self.head = np.zeros(slots, dtype=np.int32)
        self.length = np.zeros(slots, dtype=np.int32)
        self.nbytes = self.head.nbytes + self.length.nbytes


@kernel
def _gather(values: np.ndarray, slots: np.ndarray, gathered: np.ndarray) -> None:
    for i in range(len(slots)):
        for column in range(values.shape[1]):
            gathered[column, i] = values[slots[i], column]


@kernel
def _put(
    offsets: np.ndarray,
    data: np.ndarray,
    rows: np.ndarray,
    slots: np.ndarray,
    head: np.ndarray,
    length: np.ndarray,
    heap: np.ndarray,
    next_: np.ndarray,
    free: np.ndarray,
) -> None:
    for i in range(len(rows)):
        start = offsets[rows[i]]
        size = offsets[rows[i] + 1] - start
        slot = slots[i]
        length[slot] = size
        head[slot] = free[0]
        done = 0
        while done < size:
            block = free[0]
            free[0] = next_[block]
            free[1] -= 1
            copy_bytes(data, start + done, heap, block * BLOCK_BYTES, min(BLOCK_BYTES, size - done))
            done += BLOCK_BYTES


@kernel
def _gather_bytes(
    slots: np.ndarray, offsets: np.ndarray, data: np.ndarray, head: np.ndarray, heap: np.ndarray, next_: np.ndarray
) -> None:
    for i in range(len(slots)):
        block = head[slots[i]]
        start = offsets[i]
        size = offsets[i + 1] - start
        done = 0
        while done < size:
            copy_bytes(heap, block * BLOCK_BYTES, data, start + done, min(BLOCK_BYTES, size - done))
            block = next_[block]
            done += BLOCK_BYTES


@kernel
def _release(slots: np.ndarray, head: np.ndarray, length: np.ndarray, next_: np.ndarray, free: np.ndarray) -> None:
    for i in range(len(slots)):
        slot = slots[i]
        blocks = (length[slot] + BLOCK_BYTES - 1) // BLOCK_BYTES
        if blocks > 0:
            last = head[slot]
            for _ in range(blocks - 1):
                last = next_[last]
            next_[last] = free[0]
            free[0] = head[slot]
            free[1] += blocks
            length[slot] = 0
