"""The papers' theorems about I/O, on exact counts of pages, for streams that hypothesis makes.

Each test states what its theorem assumes. MESHJOIN 2007, theorem 3.1 (the join is exact) is held by test_joins.py.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from semistream import HybridJoin, MemoryRelation, MeshJoin
from semistream.planning import Skew

ROWS, PAGE_ROWS = 2000, 50
PAGES = ROWS // PAGE_ROWS
STREAM = pa.schema([pa.field("key", pa.int64(), nullable=False)])
FILLED = 15 / 16  # of H_S at least, while the stream has more tuples

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


@given(keys=KEYS)
def test_hybridjoin_reads_no_partition_twice_within_the_tuples_that_wait(keys: list[int]) -> None:
    """HYBRIDJOIN 2011, theorem 1: on any stream it reads each partition at most as often as MESHJOIN scans R.

    MESHJOIN reads every partition once for h_S stream tuples. The theorem assumes that H_S is full: here it is filled
    again when a sixteenth of it is free, and once more read out at the end of the stream.
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
