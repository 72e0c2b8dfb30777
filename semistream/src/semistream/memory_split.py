"""Divide a join's memory over its parts. No other file decides the size of a part.

The papers give most of the memory to H_S and Q, a small share to the stream buffer, one page to the disk buffer, and
15% to the front stage (CHYBRIDJOIN 2017, section 5.4; HYBRIDJOIN 2011, section 4.4.1).
"""

from dataclasses import dataclass

import pyarrow as pa
from semistream import arrow
from semistream.disk_buffer import DiskBuffer
from semistream.front_stage import FrontStage
from semistream.gathering import Gathering
from semistream.relation.base import Relation
from semistream.row_store import BLOCK_BYTES, RowStore
from semistream.stream_buffer import StreamBuffer
from semistream.waiting_tuples import WaitingTuples

__all__ = ["MemorySplit", "Needs", "Shares", "heap_blocks", "split_memory"]

_LEAST = 16  # rows of the smallest chunk, slots of the smallest table
_MOST_CHUNK_ROWS = 65536
_LEAST_BLOCKS = 2048  # heap of a join with few slots, if its memory allows it
_SMALL = 1024  # bytes for counters and other small arrays of all parts
_HIDDEN = 4  # if keys of R repeat, one of as many slots of H_R is for hidden rows
_LINK_BYTES = 4  # from a row in H_R to the next row of its key
_PROBE_BYTES = 8  # a found slot and its master row, per row of a chunk


@dataclass(frozen=True)
class Shares:
    """Shares of a join's memory; H_S and Q get the rest.

    Attributes:
        stream_buffer: share for the stream buffer and the arrays that one chunk of it needs.
        front_stage: share for H_R or, in X-HYBRIDJOIN, for the non-swappable part; other joins ignore it.
        absent: share for the table of absent keys; joins without a front stage ignore it.
        string_bytes: expected length of a string or binary value.
    """

    stream_buffer: float = 0.05
    front_stage: float = 0.15
    absent: float = 0.01
    string_bytes: int = 32

    def __post_init__(self) -> None:
        total = self.stream_buffer + self.front_stage + self.absent
        if not (min(self.stream_buffer, self.front_stage, self.absent) >= 0 and total < 1):  # nor is NaN allowed
            raise ValueError(
                f"shares must not be negative, and their sum must be less than 1, got {self}: correct one of them"
            )


@dataclass(frozen=True)
class MemorySplit:
    """Sizes of a join's parts; together they fit into its memory."""

    chunk_rows: int
    buffer_bytes: int
    cache_slots: int
    cache_blocks: int
    absent_slots: int
    hidden_slots: int  # of the cache, for rows whose key repeats and is not complete
    kept_rows: int  # of R's first rows, if their mean size is that of the largest page's rows
    kept_bytes: int  # for them and their keys
    waiting_slots: int  # h_S
    waiting_blocks: int


@dataclass(frozen=True)
class Needs:
    """What a join needs in addition to stream buffer, disk buffer and H_S, and the limits of h_S."""

    front_stage: bool = False
    kept_rows: bool = False
    least_waiting: int = _LEAST
    most_waiting: int = 2**31 - 1
    extra_per_waiting: int = 0
    extra_fixed: int = 0
    extra_per_cached: int = 0


def split_memory(
    memory: int,
    shares: Shares,
    needs: Needs,
    relation: Relation,
    buffered: pa.Schema,
    kept: pa.Schema,
    cached: pa.Schema,
) -> MemorySplit:
    """Divide `memory` bytes over the parts of a join; if they are too few, raise a ValueError with the minimum.

    Args:
        memory: the budget.
        shares: how the budget is divided.
        needs: what this kind of join needs.
        relation: R.
        buffered: the stream's columns in the stream buffer.
        kept: the stream's columns of a waiting tuple.
        cached: R's columns in the front stage.
    """
    buffered_row = _row_bytes(buffered, shares) + StreamBuffer.BYTES_PER_ROW
    chunk_row = buffered_row + FrontStage.BYTES_PER_CHUNK_ROW + _PROBE_BYTES
    cache_slot = (
        FrontStage.bytes_per_slot(cached)
        + heap_blocks(cached, shares) * RowStore.bytes_per_block(cached)
        + needs.extra_per_cached
        + (0 if relation.unique else _LINK_BYTES + -(-Gathering.BYTES_PER_SLOT // _HIDDEN))
    )
    waiting_strings = heap_blocks(kept, shares) * RowStore.bytes_per_block(kept)
    waiting_slot = WaitingTuples.bytes_per_slot(kept) + waiting_strings + needs.extra_per_waiting
    page = DiskBuffer.size(relation)
    kept_row = DiskBuffer.row_size(relation)
    fixed = _SMALL + page + needs.extra_fixed
    least = (
        fixed
        + _LEAST * chunk_row
        + needs.front_stage * _LEAST * (cache_slot + FrontStage.BYTES_PER_ABSENT_KEY)
        + needs.kept_rows * _LEAST * kept_row
        + needs.least_waiting * waiting_slot
    )
    if memory < least:
        raise ValueError(
            f"memory must be at least {least} bytes for this join, relation and stream, got {memory}: "
            "give it more, or build the relation with fewer rows per page"
        )

    def slots(share: float, size: int) -> int:
        """Return the slots or rows of a part: the least, and as many more as its share allows."""
        return _LEAST + int(share * (memory - least)) // size

    chunk_rows = min(slots(shares.stream_buffer, chunk_row), _MOST_CHUNK_ROWS)
    buffer_bytes = chunk_rows * buffered_row
    cache_slots = slots(shares.front_stage, cache_slot) if needs.front_stage else 0
    if relation.unique:  # more slots would stay empty; with repeated keys they are room for hidden rows
        cache_slots = min(cache_slots, max(_LEAST, relation.most_pages * relation.page_rows))
    absent_slots = slots(shares.absent, FrontStage.BYTES_PER_ABSENT_KEY) if needs.front_stage else 0
    kept_rows = slots(shares.front_stage, kept_row) if needs.kept_rows else 0
    rest = (
        memory
        - fixed
        - chunk_rows * chunk_row
        - cache_slots * cache_slot
        - absent_slots * FrontStage.BYTES_PER_ABSENT_KEY
        - kept_rows * kept_row
    )
    waiting_slots = min(rest // waiting_slot, needs.most_waiting)
    return MemorySplit(
        chunk_rows=chunk_rows,
        buffer_bytes=buffer_bytes,
        cache_slots=cache_slots,
        cache_blocks=cache_slots * heap_blocks(cached, shares),
        absent_slots=absent_slots,
        hidden_slots=0 if relation.unique else cache_slots // _HIDDEN,
        kept_rows=kept_rows,
        kept_bytes=kept_rows * kept_row,
        waiting_slots=waiting_slots,
        waiting_blocks=min(
            (rest - waiting_slots * (waiting_slot - waiting_strings)) // (BLOCK_BYTES + 4),
            max(waiting_slots * heap_blocks(kept, shares), _LEAST_BLOCKS),
        ),
    )


def heap_blocks(schema: pa.Schema, shares: Shares) -> int:
    """Count the heap blocks a row is expected to take."""
    return sum(-(-shares.string_bytes // BLOCK_BYTES) for field in schema if arrow.is_variable_width(field.type))


def _row_bytes(schema: pa.Schema, shares: Shares) -> int:
    """Count the bytes an Arrow row is expected to take."""
    return RowStore.bytes_per_slot(schema) + sum(
        shares.string_bytes for field in schema if arrow.is_variable_width(field.type)
    )
