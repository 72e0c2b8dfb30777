"""Rows kept in memory that was allocated once: stream tuples that wait in H_S, master rows cached in H_R.

A row lives in a slot. Columns of one width are in one array, a row's values together. Strings and binaries are cut
into blocks of `BLOCK` bytes in one heap all columns share, chained by `_next`; free blocks are used again.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from semistream import arrow
from semistream.kernel import inlined, kernel

BLOCK = 32


class RowStore:
    """A fixed number of slots for rows of one schema, each with a 64-bit `ids` of its caller's choice."""

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
        self._heap = np.zeros(blocks * BLOCK, dtype=np.uint8)
        self._next = np.arange(1, blocks + 1, dtype=np.int32)
        self._free = np.array([0, blocks], dtype=np.int64)  # first free block, how many are free

    @staticmethod
    def bytes_per_slot(schema: pa.Schema) -> int:
        """Say what a slot costs, its strings not counted."""
        return 8 + sum(
            (8 if arrow.is_variable_width(f.type) else arrow.fixed_width_dtype(f.type).itemsize) + int(f.nullable)
            for f in schema
        )

    @staticmethod
    def bytes_per_block(schema: pa.Schema) -> int:
        """Say what a heap block costs: nothing when the schema has no strings."""
        return BLOCK + 4 if any(arrow.is_variable_width(f.type) for f in schema) else 0

    @property
    def nbytes(self) -> int:
        """Count the bytes of all arrays."""
        heap = self._heap.nbytes + self._next.nbytes + self._free.nbytes
        columns = sum(g.values.nbytes for g in self._groups) + sum(v.nbytes for v in self._variable.values())
        return self.ids.nbytes + self._valid.nbytes + heap + columns

    @property
    def free_blocks(self) -> int:
        """Count the heap blocks that hold nothing."""
        return int(self._free[1])

    @property
    def heap_blocks(self) -> int:
        """Count all heap blocks."""
        return len(self._next)

    def blocks_needed(self, rows: pa.RecordBatch) -> np.ndarray:
        """Count the heap blocks each row would take; an empty array when the schema has no strings."""
        if not self._variable:
            return np.empty(0, dtype=np.int64)
        needed = np.zeros(rows.num_rows, dtype=np.int64)
        for i in self._variable:
            offsets, _ = arrow.variable_width(rows.column(i))
            needed += (np.diff(offsets) + BLOCK - 1) // BLOCK
        return needed

    def put(self, rows: pa.RecordBatch, chosen: np.ndarray, slots: np.ndarray, ids: np.ndarray) -> None:
        """Copy chosen rows into slots. The caller has made sure that slots and heap blocks are free."""
        self.ids[slots] = ids
        for group in self._groups:
            for n, i in enumerate(group.columns):
                group.values[slots, n] = arrow.fixed_width(rows.column(i), group.values.dtype)[chosen]
        for i, column in self._variable.items():
            offsets, data = arrow.variable_width(rows.column(i))
            _put(offsets, data, chosen, slots, column.head, column.length, self._heap, self._next, self._free)
        for i, n in self._nullable.items():
            if rows.column(i).null_count:
                self._ever_null[i] = True
                self._valid[slots, n] = arrow.validity(rows.column(i))[chosen]
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
        """Give the ids of the rows in slots."""
        return self.ids.take(slots)

    def free(self, slots: np.ndarray) -> None:
        """Give the heap blocks of the rows in slots back."""
        for column in self._variable.values():
            _free(slots, column.head, column.length, self._next, self._free)

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
    """Columns of one width, side by side, so that one row's values are together."""

    def __init__(self, columns: list[int], dtype: np.dtype, slots: int) -> None:
        self.columns = columns
        self.values = np.zeros((slots, len(columns)), dtype=dtype)


class _Variable:
    """A string or binary column: where each value starts in the heap, and how long it is."""

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


@inlined
def _copy(source: np.ndarray, start: int, target: np.ndarray, to: int, count: int) -> None:
    """Copy bytes; indices are unsigned, for numba asks of a signed one whether it counts from the end."""
    at, place = np.uint64(start), np.uint64(to)
    for i in range(np.uint64(count)):
        target[place + i] = source[at + i]


@kernel
def _put(
    offsets: np.ndarray,
    data: np.ndarray,
    chosen: np.ndarray,
    slots: np.ndarray,
    head: np.ndarray,
    length: np.ndarray,
    heap: np.ndarray,
    next_: np.ndarray,
    free: np.ndarray,
) -> None:
    for i in range(len(chosen)):
        start = offsets[chosen[i]]
        size = offsets[chosen[i] + 1] - start
        slot = slots[i]
        length[slot] = size
        head[slot] = free[0]
        done = 0
        while done < size:
            block = free[0]
            free[0] = next_[block]
            free[1] -= 1
            _copy(data, start + done, heap, block * BLOCK, min(BLOCK, size - done))
            done += BLOCK


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
            _copy(heap, block * BLOCK, data, start + done, min(BLOCK, size - done))
            block = next_[block]
            done += BLOCK


@kernel
def _free(slots: np.ndarray, head: np.ndarray, length: np.ndarray, next_: np.ndarray, free: np.ndarray) -> None:
    for i in range(len(slots)):
        slot = slots[i]
        blocks = (length[slot] + BLOCK - 1) // BLOCK
        if blocks > 0:
            last = head[slot]
            for _ in range(blocks - 1):
                last = next_[last]
            next_[last] = free[0]
            free[0] = head[slot]
            free[1] += blocks
            length[slot] = 0
