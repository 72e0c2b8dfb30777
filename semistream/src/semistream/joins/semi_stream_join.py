"""What all joins have in common: parts, memory, and the loop that feeds them."""

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from semistream.disk_buffer import DiskBuffer
from semistream.front_stage import FrontStage
from semistream.keys import KeyCodec
from semistream.memory_split import MemorySplit, Needs, Shares, split_memory
from semistream.output import Output, PageRows, PairOutput, RowOutput
from semistream.relation.base import Page, Relation
from semistream.stream_buffer import Chunk, Encoder, StreamBuffer
from semistream.waiting_tuples import WaitingTuples

__all__ = ["SemiStreamJoin"]

_HITS_A_MISS = 64  # stream tuples that are probed at a time, for each tuple that can wait


class SemiStreamJoin(ABC):
    """Joins a stream S with a relation R within a budget of memory.

    Args:
        relation: master data R.
        stream: schema of the stream's batches.
        on: key columns of the stream, in the order of the relation's key.
        memory: budget in bytes. The constructor allocates all large arrays.
        how: "inner", or "left" to keep stream tuples that match nothing.
        columns: columns of R to add; by default all but its key.
        shares: how the memory is divided.
        output: "rows" for Arrow record batches; "pairs" for the numbers of stream tuples and the positions in R of
            their master rows, so that memory holds keys only.
        partition_pages: pages of R that an iteration reads; `read_partitions_of` changes it while the join runs.

    Attributes:
        buffered: schema of the stream buffer.
        kept: schema of a waiting tuple.
        cached: schema of a row in the front stage.
        probed: tuples of R looked up in H_S so far.
        seconds: that `feed`, `step` and `finish` have taken so far.
    """

    paper_name: ClassVar[str]  # the algorithm's name in its paper
    needs: ClassVar[Needs] = Needs()
    unique_key: ClassVar[bool] = True  # whether the key of R must be unique
    partitioned: ClassVar[bool] = True  # whether an iteration can read several pages

    def __init__(
        self,
        relation: Relation,
        stream: pa.Schema,
        on: str | Sequence[str],
        memory: int,
        *,
        how: Literal["inner", "left"] = "inner",
        columns: Sequence[str] | None = None,
        shares: Shares | None = None,
        output: Literal["rows", "pairs"] = "rows",
        partition_pages: int = 1,
    ) -> None:
        self.relation = relation
        self.stream = stream
        self.on = (on,) if isinstance(on, str) else tuple(on)
        master = self._check(how, columns, output)
        self.memory = memory
        self.buffered, self.kept, self.cached = self._columns_kept(relation, stream, self.on, master, output)
        self._check_partition(partition_pages)
        self.disk_buffer = DiskBuffer(relation, self._columns_read(master), partition_pages)
        self.shares = shares or Shares()
        self.split = self._divide(master, self.shares)
        self.stream_buffer = StreamBuffer(self._encoder(), self.on, self.split.buffer_bytes, self.split.chunk_rows)
        self.front_stage = self._make_front_stage()
        self.waiting = WaitingTuples(self.kept, self.split.waiting_slots, self.split.waiting_blocks)
        self._version = relation.version
        self.probed = 0
        self.seconds = 0.0
        outer = how == "left"
        self._output: Output = RowOutput(stream, master, outer=outer) if output == "rows" else PairOutput(outer=outer)
        self._master = master
        self._columns = master.names
        self._found_slots = np.empty(self.split.chunk_rows, dtype=np.int32)
        self._found_rows = np.empty(self.split.chunk_rows, dtype=np.int32)

    # --- what a caller uses ---

    def feed(self, batch: pa.RecordBatch) -> list[Any]:
        """Join stream tuples, and return the output that is ready. Up to h_S tuples keep waiting."""
        pieces = self.stream_buffer.pieces(self._check_batch(batch))
        began = time.perf_counter()
        joined = self._read_all()  # tuples from `offer` come first
        for piece in pieces:
            self.stream_buffer.put(piece)
            joined += self._read_all()
        self.seconds += time.perf_counter() - began
        return joined

    def offer(self, batch: pa.RecordBatch) -> None:
        """Put stream tuples into the stream buffer, for `step` to join."""
        self.stream_buffer.put(self._check_batch(batch))

    def step(self) -> list[Any]:
        """Run one iteration of the algorithm's loop, and return its output."""
        began = time.perf_counter()
        joined = self._iterate()
        self.seconds += time.perf_counter() - began
        return joined

    def finish(self) -> list[Any]:
        """Join all waiting tuples when the stream pauses or ends; `feed` can be called again afterwards."""
        joined: list[Any] = []
        began = time.perf_counter()
        while self.pending or len(self.stream_buffer):
            joined += self._iterate()
        self.seconds += time.perf_counter() - began
        return joined

    def preload(self) -> None:
        """Fill an empty front stage with the first rows of R: the most frequent ones, if R is in that order.

        X-HYBRIDJOIN keeps the first pages of R in memory (X-HYBRIDJOIN 2013); the front stage then has the same rows,
        but each can be overwritten on its own when the stream changes. If keys of R repeat, it stays empty: the first
        rows of a key may not be all.
        """
        if not self.front_stage.cache.count:
            self.fill()

    def fill(self) -> None:
        """Fill the free slots of the front stage with the first rows of R."""
        cache = self.front_stage.cache
        most = -(-cache.slots // self.relation.page_rows) if self.relation.unique else 0
        for page in range(min(most, self.relation.pages)):
            if not cache.has_room():
                return
            first_rows = self.disk_buffer.read(page)
            rows = np.arange(len(first_rows.keys))
            self.front_stage.admit(first_rows, rows, np.ones(len(rows), dtype=np.int32))

    def read_partitions_of(self, pages: int) -> None:
        """Read partitions of this many pages from the next iteration on."""
        self._check_partition(pages)
        self.disk_buffer.partition_pages = pages

    @property
    def pending(self) -> int:
        """Count the stream tuples that the join has read and not joined yet."""
        return len(self.waiting)

    def memory_used(self) -> int:
        """Count the bytes of all parts, the stream buffer at its full size."""
        return (
            self.stream_buffer.capacity
            + self.waiting.nbytes
            + self.front_stage.nbytes
            + self.disk_buffer.nbytes
            + self._found_slots.nbytes
            + self._found_rows.nbytes
        )

    # --- what an algorithm implements ---

    @abstractmethod
    def _stream_phase(self) -> None:
        """Read stream tuples until the stream buffer is empty or no more can wait."""

    @abstractmethod
    def _disk_phase(self) -> None:
        """Read a partition of R and join its pages with the tuples that wait."""

    def _read_all(self) -> list[Any]:
        """Empty the stream buffer; whenever no more tuples can wait, read a page to make room."""
        self._stream_phase()
        while len(self.stream_buffer):
            self._disk_phase()
            if self._enough_room():
                self._stream_phase()
        return self._output.drain()

    def _iterate(self) -> list[Any]:
        self._stream_phase()
        if self.pending:
            self._disk_phase()
        return self._output.drain()

    def _enough_room(self) -> bool:
        """Return whether there is room for enough waiting tuples to make a stream phase worth its fixed cost."""
        return self.waiting.room >= self.waiting.slots // 16

    @classmethod
    def divide(  # as the constructor does
        cls,
        relation: Relation,
        stream: pa.Schema,
        on: tuple[str, ...],
        memory: int,
        *,
        columns: Sequence[str] = (),
        shares: Shares | None = None,
        output: Literal["rows", "pairs"] = "rows",
        partition_pages: int = 1,
    ) -> MemorySplit:
        """Return how a join of this kind would divide its memory, without making it."""
        cls._check_partition(partition_pages)
        shares = shares or Shares()
        partitions = DiskBuffer(relation, (), partition_pages).most_partitions
        master = pa.schema([relation.schema.field(name) for name in (columns if output == "rows" else ())])
        buffered, kept, cached = cls._columns_kept(relation, stream, on, master, output)
        needs = cls._needs(relation, master, shares, partitions)
        return split_memory(memory, shares, needs, relation, buffered, kept, cached)

    @classmethod
    def _columns_kept(
        cls, relation: Relation, stream: pa.Schema, on: tuple[str, ...], master: pa.Schema, output: str
    ) -> tuple[pa.Schema, pa.Schema, pa.Schema]:
        """Return the columns in the stream buffer, of a waiting tuple, and of a cached row."""
        keys = pa.schema([stream.field(name) for name in dict.fromkeys(on)])
        buffered = stream if output == "rows" else keys
        kept = stream if output == "rows" else pa.schema([] if cls._is_exact(relation) else keys)
        confirming = [name for name in relation.key if name not in master.names and not relation.codec.exact]
        return buffered, kept, pa.schema([*master, *(relation.schema.field(name) for name in confirming)])

    def _divide(self, master: pa.Schema, shares: Shares) -> MemorySplit:
        needs = self._needs(self.relation, master, shares, self.disk_buffer.most_partitions)
        return split_memory(self.memory, shares, needs, self.relation, self.buffered, self.kept, self.cached)

    def _make_front_stage(self) -> FrontStage:
        sizes = self.split
        return FrontStage(
            self.cached,
            sizes.cache_slots,
            sizes.cache_blocks,
            sizes.absent_slots,
            sizes.chunk_rows,
            sizes.waiting_slots,
            sizes.hidden_slots,
        )

    def _columns_read(self, master: pa.Schema) -> list[str]:
        """Return the columns of R that are output, and those that confirm a match."""
        return [*master.names, *(name for name in self.relation.key if name not in master.names and not self._exact)]

    @classmethod
    def _needs(cls, relation: Relation, master: pa.Schema, shares: Shares, partitions: int) -> Needs:  # noqa: ARG003 - for those that need more
        return cls.needs

    @classmethod
    def _is_exact(cls, relation: Relation) -> bool:
        """Return whether equal 64-bit keys are a match, so that the key columns need no comparison."""
        return relation.codec.exact

    @property
    def _exact(self) -> bool:
        """Whether equal 64-bit keys are a match."""
        return self._is_exact(self.relation)

    def _encoder(self) -> Encoder:
        """Return the encoder of the stream's key columns; the relation encodes its key columns in the same way."""
        return KeyCodec([self.stream.field(name).type for name in self.on], partner=self.relation.codec)

    def _keys_to_join(self) -> tuple[str, ...]:
        """Return the columns of R that the columns of `on` are compared with, in the same order."""
        return self.relation.key

    # --- what algorithms share ---

    def _probe_front_stage(self, room: int) -> int:
        """Probe H_R with the next stream tuples; put up to `room` tuples that miss into H_S and Q.

        CHYBRIDJOIN 2017, algorithm 3. Tuples without a key match nothing. Returns how many tuples were read.
        """
        if (version := self.relation.version) != self._version:
            self._version = version
            self._forget()
        chunk = self._peek(_HITS_A_MISS * room + _HITS_A_MISS)
        needed = self.waiting.rows.blocks_needed(chunk.rows)
        blocks = self.waiting.rows.free_blocks

        def confirm(rows: np.ndarray, slots: np.ndarray) -> np.ndarray:
            keys = chunk.rows.select(self.on).take(pa.array(rows)).columns
            return KeyCodec.equal(keys, self.front_stage.cache.rows.take_columns(self.relation.key, slots))

        confirms = None if self._exact else confirm
        read, hits, slots, unmatched, misses = self.front_stage.probe(chunk, room, needed, blocks, confirms)
        for tuples, rows in self.front_stage.every_row(hits, slots, confirms):
            self._output.joined(chunk, tuples, self.front_stage.cache.rows, rows)
        self._output.unmatched(chunk, unmatched)
        self._wait(chunk, misses)
        self.stream_buffer.drop(read)
        if read == 0 and not len(self.waiting):  # a tuple that a join with more memory has shed can be too large
            self._check_strings(chunk.rows)
        return read

    def _forget(self) -> None:
        """Forget what is no longer sure when R may have new rows."""
        self.front_stage.forget_absent()

    def _peek(self, most: int) -> Chunk:
        """Return the next stream tuples, at most `most`."""
        return self.stream_buffer.peek(most)

    def _wait(self, chunk: Chunk, misses: np.ndarray) -> None:
        """Put stream tuples into H_S and Q."""
        self.waiting.insert(chunk.rows, misses, chunk.keys[misses], chunk.first + misses)

    def _confirmed(self, page: Page, slots: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Drop matches whose key columns differ; if 64-bit keys are exact, none do."""
        if self._exact:
            return slots, rows
        keys = page.rows.select(self.relation.key).take(pa.array(rows)).columns
        same = KeyCodec.equal(self.waiting.rows.take_columns(self.on, slots), keys)
        return slots[same], rows[same]

    def _output_rows(self, page: Page) -> PageRows:
        """Return the rows of the page, with only the columns of the output."""
        return PageRows(page, self._columns)

    def _check(self, how: str, columns: Sequence[str] | None, output: str) -> pa.Schema:
        """Check the parameters other than memory, and return the master columns of the output."""
        if how not in {"inner", "left"}:
            raise ValueError(f'how must be "inner" or "left", got {how!r}: choose one of them')
        if output not in {"rows", "pairs"}:
            raise ValueError(f'output must be "rows" or "pairs", got {output!r}: choose one of them')
        missing = [name for name in self.on if name not in self.stream.names]
        if missing or len(self.on) != len(self._keys_to_join()):
            raise ValueError(
                f"on must name {len(self._keys_to_join())} columns of the stream {self.stream.names}, "
                f"got {list(self.on)}: name one for each key column of the relation {list(self._keys_to_join())}"
            )
        if self.unique_key and not self.relation.unique:
            raise ValueError(
                f"the relation's key {list(self.relation.key)} must be unique for {type(self).__name__}, it is not: "
                "use MeshJoin, CMeshJoin or IndexNestedLoopJoin, or choose a unique key"
            )
        names = [n for n in self.relation.schema.names if n not in self.relation.key] if columns is None else columns
        unknown = [name for name in names if name not in self.relation.schema.names]
        clashes = [name for name in names if name in self.stream.names]
        if unknown or clashes:
            raise ValueError(
                f"columns must be of the relation {self.relation.schema.names} and not of the stream, "
                f"got {unknown + clashes}: correct their names, or rename the stream's columns"
            )
        return pa.schema([self.relation.schema.field(name) for name in (names if output == "rows" else [])])

    @classmethod
    def _check_partition(cls, pages: int) -> None:
        if pages != 1 and not cls.partitioned:
            raise ValueError(
                f"partition_pages must be 1 for {cls.__name__}, which reads a page for each tuple, got {pages}: "
                "use HybridJoin or CHybridJoin for partitions of several pages"
            )

    def _check_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not batch.schema.equals(self.stream):
            raise ValueError(
                f"batch must have the stream's schema {self.stream.names}, got {batch.schema.names}: "
                "select and cast its columns"
            )
        buffered = batch if self.buffered is self.stream else batch.select(self.buffered.names)
        self._check_strings(buffered)
        return buffered

    def _check_strings(self, tuples: pa.RecordBatch) -> None:
        """Refuse a tuple whose strings are larger than the whole heap: it could never wait."""
        needed = int(self.waiting.rows.blocks_needed(tuples).max(initial=0))
        if needed > self.waiting.rows.heap_blocks:
            raise ValueError(
                f"a stream tuple's strings must fit into {self.waiting.rows.heap_blocks} blocks of memory, "
                f"they take {needed}: raise memory, or Shares.string_bytes"
            )
