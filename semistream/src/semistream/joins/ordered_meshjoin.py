"""MESHJOIN with output in the order of the stream (MESHJOIN 2007, section 3.3)."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from semistream.joins.meshjoin import MeshJoin
from semistream.memory_split import Needs, Shares, heap_blocks
from semistream.ordered_results import OrderedResults
from semistream.relation.base import Page, Relation
from semistream.row_store import RowStore
from semistream.stream_buffer import Chunk

__all__ = ["OrderedMeshJoin"]


class OrderedMeshJoin(MeshJoin):
    """MESHJOIN that keeps the results of a stream tuple in memory, and outputs them when the tuple expires.

    There is room for one result per waiting tuple, on average; more results at a time raise MemoryError.
    """

    paper_name: ClassVar[str] = "MESHJOIN, ordered output"

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        master = pa.schema([self.relation.schema.field(name) for name in self._columns])
        slots = self.waiting.slots
        self._results = OrderedResults(master, slots, slots * heap_blocks(master, self.shares))
        self._keyless = np.zeros(slots, dtype=np.bool_)  # waiting tuples that have no key

    def memory_used(self) -> int:
        """Count the bytes of all parts, buffers at their full size."""
        return super().memory_used() + self._results.nbytes + self._keyless.nbytes

    @classmethod
    def _needs(cls, relation: Relation, master: pa.Schema, shares: Shares, partitions: int) -> Needs:
        needs = super()._needs(relation, master, shares, partitions)
        strings = heap_blocks(master, shares) * RowStore.bytes_per_block(master)
        extra = OrderedResults.bytes_per_slot(master) + strings + 1
        return replace(needs, extra_per_waiting=needs.extra_per_waiting + extra)

    def _peek(self, most: int) -> Chunk:
        """Return the next tuples as if all had a key: those without one match nothing, but wait to stay in order."""
        chunk = self.stream_buffer.peek(most)
        return chunk._replace(valid=np.ones(len(chunk.valid), dtype=np.bool_))

    def _wait(self, chunk: Chunk, misses: np.ndarray) -> None:
        slots = self.waiting.insert(chunk.rows, misses, chunk.keys[misses], chunk.first + misses)
        self._keyless[slots] = ~self.stream_buffer.peek(len(chunk.keys)).valid[misses]

    def _output_matches(self, page: Page, slots: np.ndarray, rows: np.ndarray) -> None:
        """Keep the results until their tuples expire."""
        matching = ~self._keyless[slots]
        self._results.add(slots[matching], page, rows[matching])

    def _expire(self, count: int) -> None:
        """Dequeue the oldest chunk, and output its results in order."""
        slots = self.waiting.queue.oldest(count)
        tuples, places = self._results.pop(slots)
        with_result = np.isin(slots, tuples)
        self._output.in_order(self.waiting.rows, tuples, self._results.rows, places, slots[~with_result])
        self._results.release(places)
        self.waiting.delete(slots)
