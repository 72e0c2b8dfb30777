"""The papers' theorems about I/O, on exact counts of pages, for streams that hypothesis makes.

Each test states what its theorem assumes. MESHJOIN 2007, theorem 3.1, says that the join is exact; test_joins.py holds
that. It assumes that tuples arrive no faster than they are joined: see the last test.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from semistream import CHybridJoin, HybridJoin, LoadShedder, MemoryRelation, MeshJoin, ShedStore, UpfrontShedder
from semistream.memory_split import Shares
from semistream.planning import Skew

if TYPE_CHECKING:
    from semistream.relation.base import Page
    from semistream.waiting_tuples import WaitingTuples

ROWS, PAGE_ROWS = 2000, 50
PAGES = ROWS // PAGE_ROWS
STREAM = pa.schema([pa.field("key", pa.int64(), nullable=False)])
FILLED = 15 / 16  # of H_S at least, while the stream has more tuples
ITERATIONS = 600  # of a join that sheds

KEYS = st.one_of(
    st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=3000),
    st.tuples(st.floats(0, 2), st.integers(0, 1000)).map(lambda drawn: drawn_keys(*drawn)),
    st.integers(0, ROWS - 1).map(lambda key: [key] * 3000),  # one key only
    st.integers(1, 200).map(lambda step: [(step * number) % ROWS for number in range(5000)]),  # all pages in turn
)


def drawn_keys(exponent: float, seed: int) -> list[int]:
    """Draw keys by Zipf's law."""
    heads = Skew(ROWS, exponent).head(np.arange(ROWS + 1))
    keys: list[int] = (np.searchsorted(heads, np.random.default_rng(seed).random(6000)) - 1).clip(0).tolist()
    return keys


def relation() -> MemoryRelation:
    """Return R in the order of its keys, which is that of their frequency."""
    return MemoryRelation(pa.table({"id": np.arange(ROWS), "value": np.arange(ROWS)}), ["id"], PAGE_ROWS)


def run(join: MeshJoin | HybridJoin, keys: list[int]) -> int:
    """Join a stream that always has more tuples, then its end; return the pages that were read."""
    for start in range(0, len(keys), 512):
        join.feed(pa.RecordBatch.from_arrays([pa.array(keys[start : start + 512], pa.int64())], schema=STREAM))
    join.finish()
    return join.relation.counters.pages_read


class Watched(HybridJoin):
    """Notes of each read the page, the number in the stream of the oldest tuple, and how many tuples wait."""

    def __init__(self, r: MemoryRelation, memory: int) -> None:
        super().__init__(r, STREAM, "key", memory)
        self.reads: list[tuple[int, int, int]] = []

    def _join(self, page: Page) -> None:
        oldest = int(self.waiting.rows.identify(self.waiting.queue.oldest(1))[0])
        self.reads.append((page.first // PAGE_ROWS, oldest, len(self.waiting)))
        super()._join(page)


@given(keys=KEYS)
def test_hybridjoin_reads_no_partition_twice_within_the_tuples_that_wait(keys: list[int]) -> None:
    """HYBRIDJOIN 2011, theorem 1: between two reads of a partition the queue's front moves by all tuples that waited.

    This is the step of its proof. It assumes that a page is read for the oldest tuple, and takes all its tuples out.
    """
    join = Watched(relation(), 60_000)
    run(join, keys)
    last: dict[int, tuple[int, int]] = {}
    for page, oldest, waiting in join.reads:
        before, waited = last.get(page, (-ROWS * ROWS, 0))
        assert oldest >= before + waited
        last[page] = oldest, waiting


@given(keys=KEYS)
def test_hybridjoin_reads_each_partition_at_most_as_often_as_meshjoin_scans_r(keys: list[int]) -> None:
    """HYBRIDJOIN 2011, theorem 1: on any stream it reads no more pages than MESHJOIN, up to a constant.

    MESHJOIN reads every partition once for h_S stream tuples. The theorem assumes the same h_S for both, and that H_S
    is full: here it is filled again when a sixteenth of it is free, and once more read out at the end of the stream.
    It counts pages: that HYBRIDJOIN seeks for each of them is a constant factor.
    """
    join = HybridJoin(relation(), STREAM, "key", 60_000)
    rounds = len(keys) / (FILLED * join.waiting.slots)
    assert run(join, keys) <= PAGES * (rounds + 2)


@given(keys=KEYS)
def test_hybridjoin_reads_at_most_a_page_for_each_stream_tuple(keys: list[int]) -> None:
    """HYBRIDJOIN 2011, theorem 2: on any stream it reads no more pages than INLJ, which reads one for each tuple.

    It assumes that the index of R is exact and names one page for a key.
    """
    join = HybridJoin(relation(), STREAM, "key", 60_000)
    assert run(join, keys) <= len(keys)


@given(keys=KEYS)
def test_meshjoin_scans_r_once_for_each_filling_of_its_window(keys: list[int]) -> None:
    """MESHJOIN 2007, section 3.1: it reads all of R once for h_S stream tuples, whatever their keys are."""
    join = MeshJoin(relation(), STREAM, "key", 60_000)
    rounds = len(keys) / (join.waiting.slots // join.k * join.k)
    assert PAGES * rounds - PAGES <= run(join, keys) <= PAGES * (rounds + 2)


def test_old_tuples_wait_for_rarer_pages() -> None:
    """CHYBRIDJOIN 2017, lemma 1: the older half of the queue waits for pages that fewer tuples ask for.

    It assumes that pages differ in how often the stream asks for them. They do if R is in the order of frequency. It
    holds for halves, on average over iterations, not from tuple to tuple: when the busiest page has been read, none of
    its tuples waits anywhere.
    """
    join = HybridJoin(relation(), STREAM, "key", 60_000)
    of_page = np.add.reduceat(Skew(ROWS, 1.0).shares(0, ROWS), np.arange(0, ROWS, PAGE_ROWS))
    pieces = [
        pa.RecordBatch.from_arrays([pa.array(drawn_keys(1.0, seed)[:32], pa.int64())], schema=STREAM)
        for seed in range(4000)
    ]
    halves = np.zeros(2)
    for piece in pieces:
        while len(join.stream_buffer) > join.waiting.slots or not join.stream_buffer.has_room(piece):
            join.step()
            queue = join.waiting.keys(join.waiting.queue.oldest(len(join.waiting)))
            halves += [part.mean() for part in np.array_split(of_page[queue // PAGE_ROWS], 2)]
        join.offer(piece)
    older, newer = halves
    assert older < 0.95 * newer


class Nowhere(ShedStore):
    """Forgets what is shed, as if the load stayed high for ever: nothing is replayed."""

    def add(self, tuples: pa.RecordBatch) -> None:
        """Do nothing."""


class NewestShedder(LoadShedder):
    """Sheds the newest tuples that wait, in place of the oldest."""

    def _shed_queue(self, count: int, waiting: WaitingTuples) -> None:
        waiting.delete(waiting.queue.oldest(len(waiting))[-count:])


def shedding_yield(shedder: LoadShedder, order: np.ndarray, exponent: float, seed: int) -> float:
    """Return how many waiting tuples a page gives while the stream buffer is always full.

    The buffer holds three or four times as many tuples as a page gives. Almost all tuples wait: the front stage has 16
    rows only.
    """
    r = MemoryRelation(pa.table({"id": order, "value": order}), ["id"], PAGE_ROWS)
    shares = Shares(stream_buffer=0.1, front_stage=0.0)
    join = CHybridJoin(r, STREAM, "key", 150_000, shedder=shedder, shares=shares)
    stream = itertools.cycle(pieces(exponent, seed))
    piece, joined, warm = next(stream), 0, (0, 0, 0)
    for iteration in range(ITERATIONS):
        while join.stream_buffer.has_room(piece):
            join.offer(piece)
            piece = next(stream)
        joined += sum(rows.num_rows for rows in join.step())
        if iteration == ITERATIONS // 3:
            warm = joined, join.front_stage.hits, r.counters.pages_read
    found, hits, pages = joined - warm[0], join.front_stage.hits - warm[1], r.counters.pages_read - warm[2]
    return (found - hits) / pages


def pieces(exponent: float, seed: int) -> list[pa.RecordBatch]:
    """Draw a stream by Zipf's law, in batches."""
    heads = Skew(ROWS, exponent).head(np.arange(ROWS + 1))
    keys = (np.searchsorted(heads, np.random.default_rng(seed).random(100_000)) - 1).clip(0)
    batch = pa.RecordBatch.from_arrays([pa.array(keys)], schema=STREAM)
    return [batch.slice(start, 64) for start in range(0, batch.num_rows, 64)]


@pytest.fixture(scope="module")
def nowhere(tmp_path_factory: pytest.TempPathFactory) -> ShedStore:
    """Return a store that keeps nothing."""
    return Nowhere(tmp_path_factory.mktemp("shed"), STREAM)


@settings(max_examples=5)
@given(exponent=st.floats(1, 1.2), seed=st.integers(0, 1000))
def test_shedding_the_oldest_raises_what_a_page_gives(nowhere: ShedStore, exponent: float, seed: int) -> None:
    """CHYBRIDJOIN 2017, theorem 1: a page gives more tuples when the oldest are shed than when they are shed unread.

    It assumes that pages differ much in how often the tuples that wait ask for them: the oldest wait for rare pages
    (lemma 1), and these are then hardly read. Here R is in the order of frequency and the exponent is 1 or more. For
    the same reason the oldest are better to shed than the newest that wait.
    """
    unread, newest, oldest = (
        shedding_yield(kind(nowhere), np.arange(ROWS), exponent, seed)
        for kind in (UpfrontShedder, NewestShedder, LoadShedder)
    )
    assert oldest > unread
    assert oldest > newest


@settings(max_examples=5)
@given(exponent=st.floats(0, 0.5), seed=st.integers(0, 1000))
def test_shedding_the_oldest_halves_what_a_page_gives_where_pages_are_alike(
    nowhere: ShedStore, exponent: float, seed: int
) -> None:
    """Without the assumption of CHYBRIDJOIN 2017, theorem 1, it is false: R in no order, and no row is very frequent.

    Then a page gives 2h/N of h waiting tuples for N pages if tuples are shed unread: all that came since its last read.
    If the oldest are shed, every page has a window of the same h tuples: h/N.
    """
    order = np.random.default_rng(seed).permutation(ROWS)
    unread, oldest = (shedding_yield(kind(nowhere), order, exponent, seed) for kind in (UpfrontShedder, LoadShedder))
    assert oldest / unread == pytest.approx(0.5, abs=0.1)


@given(arrivals=st.lists(st.integers(0, 3), min_size=45, max_size=90), seed=st.integers(0, 1000))
def test_meshjoin_keeps_up_with_w_tuples_an_iteration(arrivals: list[int], seed: int) -> None:
    """MESHJOIN 2007, equation 5: if at most w tuples arrive an iteration, none stays in the stream buffer.

    Theorem 3.1 (the join is exact) assumes this. When more arrive, `feed` takes no tuple until there is room, and
    `offer` refuses what the buffer has no room for: nothing is lost either way.
    """
    join = MeshJoin(relation(), STREAM, "key", 60_000)
    w = join.waiting.slots // join.k
    keys = iter(drawn_keys(1.0, seed))
    for part in arrivals:
        taken = list(itertools.islice(keys, min(w, part * w // 3)))
        join.offer(pa.RecordBatch.from_arrays([pa.array(taken, pa.int64())], schema=STREAM))
        join.step()
        assert not len(join.stream_buffer)
    twice = pa.RecordBatch.from_arrays([pa.array([0] * 2 * w, pa.int64())], schema=STREAM)
    for _ in range(join.stream_buffer.chunk_rows):
        if join.stream_buffer.has_room(twice):
            join.offer(twice)
            join.step()
    with pytest.raises(ValueError, match="stream buffer must have room"):
        join.offer(twice)
