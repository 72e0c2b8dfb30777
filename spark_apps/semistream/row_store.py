"""Rows kept in memory that was allocated once: stream tuples that wait in H_S, master rows cached in H_R.

A row lives in a slot. Values of fixed width are in one array a column. Strings and binaries are cut into blocks of
`BLOCK` bytes in one heap all columns share, chained by `_next`; a block that is given back is used again.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from spark_apps.semistream import arrow
from spark_apps.semistream.kernel import kernel

BLOCK = 32


class RowStore:
    """A fixed number of slots for rows of one schema, each with a 64-bit `ids` of its caller's choice."""

    def __init__(self, schema: pa.Schema, slots: int, heap_blocks: int) -> None:
        self.schema = schema
        self.ids = np.zeros(slots, dtype=np.int64)
        self._columns = [
            _Variable(field, slots) if arrow.is_variable_width(field.type) else _Fixed(field, slots) for field in schema
        ]
        self._variable = [i for i, column in enumerate(self._columns) if isinstance(column, _Variable)]
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
        heap = self._heap.nbytes + self._next.nbytes
        return self.ids.nbytes + heap + self._free.nbytes + sum(column.nbytes for column in self._columns)

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
        for column, values in zip(self._columns, rows.columns, strict=True):
            if isinstance(column, _Variable):
                column.put(values, chosen, slots, self._heap, self._next, self._free)
            else:
                column.put(values, chosen, slots)

    def take(self, slots: np.ndarray) -> list[pa.Array]:
        """Gather the rows in slots as Arrow columns."""
        return [self._take(column, slots) for column in self._columns]

    def take_columns(self, names: Iterable[str], slots: np.ndarray) -> list[pa.Array]:
        """Gather some columns of the rows in slots."""
        return [self._take(self._columns[self.schema.get_field_index(name)], slots) for name in names]

    def identify(self, slots: np.ndarray) -> np.ndarray:
        """Give the ids of the rows in slots."""
        ids: np.ndarray = self.ids[slots]
        return ids

    def free(self, slots: np.ndarray) -> None:
        """Give the heap blocks of the rows in slots back."""
        for i in self._variable:
            column = self._columns[i]
            if isinstance(column, _Variable):
                _free(slots, column.head, column.length, self._next, self._free)

    def _take(self, column: "_Fixed | _Variable", slots: np.ndarray) -> pa.Array:
        if isinstance(column, _Variable):
            return column.take(slots, self._heap, self._next)
        return column.take(slots)


class _Fixed:
    """A column of fixed width."""

    def __init__(self, field: pa.Field, slots: int) -> None:
        self.field = field
        self.values = np.zeros(slots, dtype=arrow.fixed_width_dtype(field.type))
        self.valid = np.zeros(slots if field.nullable else 0, dtype=np.bool_)
        self.nbytes = self.values.nbytes + self.valid.nbytes

    def put(self, source: pa.Array, chosen: np.ndarray, slots: np.ndarray) -> None:
        self.values[slots] = arrow.fixed_width(source, self.values.dtype)[chosen]
        if self.field.nullable:
            self.valid[slots] = arrow.validity(source)[chosen] if source.null_count else True

    def take(self, slots: np.ndarray) -> pa.Array:
        valid = self.valid[slots] if self.field.nullable else None
        return arrow.from_fixed_width(self.field.type, self.values[slots], valid)


class _Variable:
    """A string or binary column: where each value starts in the heap, and how long it is."""

    def __init__(self, field: pa.Field, slots: int) -> None:
        self.field = field
        self.head = np.zeros(slots, dtype=np.int32)
        self.length = np.zeros(slots, dtype=np.int32)
        self.valid = np.zeros(slots if field.nullable else 0, dtype=np.bool_)
        self.nbytes = self.head.nbytes + self.length.nbytes + self.valid.nbytes

    def put(
        self,
        source: pa.Array,
        chosen: np.ndarray,
        slots: np.ndarray,
        heap: np.ndarray,
        next_: np.ndarray,
        free: np.ndarray,
    ) -> None:
        offsets, data = arrow.variable_width(source)
        _put(offsets, data, chosen, slots, self.head, self.length, heap, next_, free)
        if self.field.nullable:
            self.valid[slots] = arrow.validity(source)[chosen] if source.null_count else True

    def take(self, slots: np.ndarray, heap: np.ndarray, next_: np.ndarray) -> pa.Array:
        offsets = np.zeros(len(slots) + 1, dtype=np.int64)
        np.cumsum(self.length[slots], out=offsets[1:])
        data = np.empty(int(offsets[-1]), dtype=np.uint8)
        _gather(slots, offsets, data, self.head, heap, next_)
        valid = self.valid[slots] if self.field.nullable else None
        return arrow.from_variable_width(self.field.type, offsets, data, valid)


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
            for j in range(min(BLOCK, size - done)):
                heap[block * BLOCK + j] = data[start + done + j]
            done += BLOCK


@kernel
def _gather(
    slots: np.ndarray, offsets: np.ndarray, data: np.ndarray, head: np.ndarray, heap: np.ndarray, next_: np.ndarray
) -> None:
    for i in range(len(slots)):
        block = head[slots[i]]
        start = offsets[i]
        size = offsets[i + 1] - start
        done = 0
        while done < size:
            for j in range(min(BLOCK, size - done)):
                data[start + done + j] = heap[block * BLOCK + j]
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
