"""Under high load the most expensive tuples go to disk, and every one of them is replayed."""

import errno
import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from semistream.joins import CHybridJoin, TimedCHybridJoin
from semistream.load_shedder import LoadShedder, UpfrontShedder
from semistream.memory_split import Shares
from semistream.relation import MemoryRelation
from semistream.shed_store import ShedStore, rows_in
from semistream.stream_buffer import StreamBuffer
from semistream.waiting_tuples import WaitingTuples

from tests.naive import equal_keys, multiset, nested_loop_join
from tests.semistream import cases

MEMORY = 30_000
SHARES = Shares(stream_buffer=0.5, front_stage=0.05)


def _join(shedder: LoadShedder, stream: pa.Schema) -> CHybridJoin:
    relation = MemoryRelation(cases.master("string", cases.master_numbers()), ["id_a"], page_rows=4)
    return CHybridJoin(relation, stream, "a", MEMORY, how="left", shares=SHARES, shedder=shedder)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    numbers=st.lists(st.one_of(st.none(), st.integers(0, cases.DOMAIN + 20)), max_size=400),
    arrivals=st.lists(st.integers(0, 150), min_size=1, max_size=12),
    steps=st.integers(1, 3),
    kind=st.sampled_from([LoadShedder, UpfrontShedder]),
)
def test_nothing_is_lost_and_nothing_comes_twice(
    tmp_path_factory: pytest.TempPathFactory,
    numbers: list[Any],
    arrivals: list[int],
    steps: int,
    kind: type[LoadShedder],
) -> None:
    """For any order of arrivals and iterations, all output together is the oracle's and the store is empty."""
    stream = cases.stream("string", numbers)
    shedder = kind(ShedStore(tmp_path_factory.mktemp("shed"), stream.schema), portion=64)
    join = _join(shedder, stream.schema)
    out: list[pa.RecordBatch] = []
    start = 0
    turn = 0
    while start < len(stream):
        for batch in stream.slice(start, arrivals[turn % len(arrivals)]).to_batches():
            for piece in join.stream_buffer.pieces(batch):
                while not join.stream_buffer.has_room(piece):
                    out += join.step()
                join.offer(piece)
        start += arrivals[turn % len(arrivals)]
        turn += 1
        for _ in range(steps):
            out += join.step()
        join.commit()
        if turn > 2 * len(stream):
            break
    out += join.finish()
    join.commit()
    expected = nested_loop_join(
        stream.slice(0, start),
        cases.master("string", cases.master_numbers()),
        equal_keys(["a"], ["id_a"]),
        cases.COLUMNS,
        outer=True,
    )
    assert multiset(out) == expected
    assert len(shedder.store) == 0
    assert shedder.to_replay == 0


def _flood(shedder: LoadShedder, size: int) -> CHybridJoin:
    """Offer more tuples than H_S holds at once, each with a key of its own."""
    stream = cases.stream("string", list(range(10_000, 10_000 + size)))
    join = _join(shedder, stream.schema)
    for batch in join.stream_buffer.pieces(stream.to_batches()[0]):
        join.offer(batch)
    return join


def _shed(store: ShedStore) -> list[int]:
    """List the shed tuples in the order of their replay."""
    return [n for name in store.names for n in store.read(name).column("n").to_pylist()]


def test_sheds_the_oldest_tuples_of_the_queue(tmp_path: Path) -> None:
    """The tuples that have waited longest are shed; new ones take their place."""
    schema = cases.stream("string", []).schema
    shedder = LoadShedder(ShedStore(tmp_path, schema))
    numbers = cases.master_numbers() * 3
    stream = cases.stream("string", numbers)
    join = _join(shedder, schema)
    join.offer(stream.slice(0, 170).to_batches()[0])
    join._stream_phase()  # noqa: SLF001 - fills H_S as the first half of a step does
    waiting = len(join.waiting)
    oldest = join.waiting.rows.identify(join.waiting.queue.oldest(waiting)).tolist()
    surplus = len(join.stream_buffer)
    assert surplus > waiting // 16
    shedder.balance(0, 1.0, join.waiting, join.stream_buffer)
    assert _shed(shedder.store) == oldest[:surplus]
    assert len(join.waiting) == max(0, waiting - surplus)


def test_upfront_shedding_takes_the_newest_of_the_buffer(tmp_path: Path) -> None:
    """The baseline leaves the queue alone and sheds the newest tuples."""
    schema = cases.stream("string", []).schema
    shedder = UpfrontShedder(ShedStore(tmp_path, schema))
    join = _flood(shedder, 140)
    join._stream_phase()  # noqa: SLF001 - fills H_S as the first half of a step does
    waiting, w = len(join.waiting), join.waiting.room
    surplus = len(join.stream_buffer) - 2 * w
    assert surplus > waiting // 16
    shedder.balance(w, 1.0, join.waiting, join.stream_buffer)
    assert len(join.waiting) == waiting
    assert len(join.stream_buffer) == 2 * w
    assert sorted(_shed(shedder.store)) == list(range(140 - surplus, 140))


def test_looks_up_away_from_where_it_sheds(tmp_path: Path) -> None:
    """While it sheds, a join reads the page of the tuple at 15% of the queue; before that, of the oldest tuple."""
    schema = cases.stream("string", []).schema
    shedder = LoadShedder(ShedStore(tmp_path, schema))
    join = _flood(shedder, 140)
    join._stream_phase()  # noqa: SLF001 - fills H_S as the first half of a step does
    assert join.page_choice.next(join.waiting) == join.waiting.queue.oldest(1)[0]
    shedder.balance(0, 1.0, join.waiting, join.stream_buffer)
    assert shedder.shed
    assert join.page_choice.next(join.waiting) == join.waiting.queue.oldest(join.pending)[int(0.15 * join.pending)]


class _Load:
    """A join with a shedder, and a skewed stream of which a number of tuples comes before each iteration.

    R is in no order. Batches come every `every` iterations.
    """

    def __init__(self, directory: Path, every: int) -> None:
        keys = np.random.default_rng(1).permutation(10_000)
        relation = MemoryRelation(pa.table({"id": keys, "value": keys}), ["id"], page_rows=100)
        stream = pa.schema([pa.field("key", pa.int64()), pa.field("n", pa.int64())])
        self.shedder = LoadShedder(ShedStore(directory, stream))
        shares = Shares(stream_buffer=0.4)
        self.join = CHybridJoin(relation, stream, "key", 300_000, how="left", shedder=self.shedder, shares=shares)
        self.offered = 0
        self.out: list[int] = []
        self._every = every
        self._due = 0.0
        self._rng = np.random.default_rng(2)

    def run(self, per_iteration: float, iterations: int) -> int:
        """Return how many shed tuples were replayed."""
        before = self.join.stream_buffer.arrived - self.offered
        for iteration in range(iterations):
            self._due += per_iteration
            if iteration % self._every == 0:
                keys = np.power(10_001.0, self._rng.random(int(self._due))).astype(int) - 1
                self._due -= len(keys)
                numbers = np.arange(self.offered, self.offered + len(keys))
                batch = pa.RecordBatch.from_arrays([pa.array(keys), pa.array(numbers)], schema=self.join.stream)
                for piece in self.join.stream_buffer.pieces(batch):
                    while not self.join.stream_buffer.has_room(piece):
                        self.step()
                    self.join.offer(piece)
                    self.offered += piece.num_rows
            self.step()
        return self.join.stream_buffer.arrived - self.offered - before

    def step(self) -> None:
        self.out += [n for batch in self.join.step() for n in batch["n"].to_pylist()]

    def service(self) -> float:
        """Let the cache learn, then measure how many tuples an iteration joins while H_S is full."""
        self.join.shedder = None
        for _ in range(2):
            before, iterations = len(self.out), 0
            while iterations < 300:
                if len(self.join.stream_buffer) < self.join.stream_buffer.chunk_rows // 4:
                    self.run(self.join.stream_buffer.chunk_rows // 4, 1)
                else:
                    self.step()
                iterations += 1
            rate = (len(self.out) - before) / iterations
        self.join.shedder = self.shedder
        return rate


@pytest.mark.parametrize("every", [1, 8])
def test_under_overload_only_the_surplus_is_shed_and_it_is_replayed_when_the_load_falls(
    tmp_path: Path, every: int
) -> None:
    """At 1.5 times the service rate the surplus is shed once; at half of it all is replayed; each tuple comes once."""
    load = _Load(tmp_path, every)
    service = load.service()
    before, joined = load.offered, len(load.out)
    replayed = load.run(1.5 * service, 1000)
    arrived = load.offered - before
    assert replayed <= 0.01 * arrived
    surplus = arrived - (len(load.out) - joined)
    assert 0.1 * arrived < load.shedder.shed <= surplus + replayed + load.join.waiting.slots
    assert load.shedder.shed <= arrived - 1000 * service, "shedding joins no fewer tuples than the service rate"
    again = load.shedder.shed
    assert load.run(0.5 * service, 2500) >= load.shedder.to_replay == 0
    assert load.shedder.shed - again <= 0.2 * again
    load.out += [n for batch in load.join.finish() for n in batch["n"].to_pylist()]
    assert sorted(load.out) == list(range(load.offered))


def test_an_iteration_is_expected_to_read_into_the_slots_that_joining_has_freed(tmp_path: Path) -> None:
    """Tuples that were read into slots that shedding has freed do not count for w."""
    promised: list[tuple[float, int]] = []

    class Shedder(LoadShedder):
        def balance(self, w: int, misses: float, waiting: WaitingTuples, buffer: StreamBuffer) -> None:
            promised.append((w * misses, waiting.room))
            super().balance(w, misses, waiting, buffer)

    load = _Load(tmp_path, every=1)
    service = load.service()
    load.join.shedder = load.shedder = Shedder(load.shedder.store)
    load.run(1.5 * service, 200)
    assert load.shedder.shed
    assert all(w <= freed for w, freed in promised)


def test_a_load_that_the_join_can_take_is_not_shed(tmp_path: Path) -> None:
    """At 0.9 times the service rate, in batches, nothing is shed."""
    load = _Load(tmp_path, every=8)
    service = load.service()
    load.run(0, 20)  # until H_S has room
    load.run(0.9 * service, 1000)
    assert load.shedder.shed == 0


def test_a_calm_stream_sheds_nothing(tmp_path: Path) -> None:
    """While the buffer holds fewer tuples than an iteration reads, nothing goes to disk."""
    stream = cases.stream("string", cases.master_numbers())
    shedder = LoadShedder(ShedStore(tmp_path, stream.schema))
    join = _join(shedder, stream.schema)
    for batch in stream.to_batches(max_chunksize=3):
        join.offer(batch)
        join.step()
    assert shedder.shed == 0


def test_all_that_waits_can_be_shed_and_joined_by_another_process(tmp_path: Path) -> None:
    """`shed_all` writes all waiting tuples to disk; a later join over the directory outputs them."""
    stream = cases.stream("string", cases.master_numbers() * 4)
    first = _join(LoadShedder(ShedStore(tmp_path, stream.schema)), stream.schema)
    out = [row for batch in stream.to_batches() for row in first.feed(batch)]
    first.shed_all()
    assert first.pending == 0
    second = _join(LoadShedder(ShedStore(tmp_path, stream.schema)), stream.schema)
    out += second.finish()
    assert multiset(out) == nested_loop_join(
        stream, cases.master("string", cases.master_numbers()), equal_keys(["a"], ["id_a"]), cases.COLUMNS, outer=True
    )
    second.commit()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("pages", [0, 3])
def test_after_the_deadline_the_front_stage_goes_on_and_the_rest_is_shed(tmp_path: Path, pages: int) -> None:
    """After the deadline no page is read: the front stage matches, and the rest is shed in small files."""
    stream = cases.stream("string", cases.master_numbers() * 4)
    relation = MemoryRelation(cases.master("string", cases.master_numbers()), ["id_a"], page_rows=4)
    join = TimedCHybridJoin(
        relation,
        stream.schema,
        "a",
        MEMORY,
        how="left",
        shares=SHARES,
        clock=lambda: relation.counters.pages_read,
    )
    shedder = LoadShedder(ShedStore(tmp_path, stream.schema))
    join.limit(pages, shedder.shed_portion)
    out = [row for batch in stream.to_batches(max_chunksize=7) for row in join.feed(batch)] + join.finish()
    assert relation.counters.pages_read == pages
    assert join.pending == 0
    assert sum(batch.num_rows for batch in out) + shedder.shed == len(stream)
    assert max(map(rows_in, shedder.store.names)) <= max(join.waiting.slots // 16, 1)
    out += _join(LoadShedder(ShedStore(tmp_path, stream.schema)), stream.schema).finish()
    assert multiset(out) == nested_loop_join(
        stream, cases.master("string", cases.master_numbers()), equal_keys(["a"], ["id_a"]), cases.COLUMNS, outer=True
    )


def test_a_file_stays_until_its_output_is_safe(tmp_path: Path) -> None:
    """A replay does not remove the file of its tuples; `commit` does."""
    stream = cases.stream("string", cases.master_numbers())
    store = ShedStore(tmp_path, stream.schema)
    store.add(stream.to_batches()[0])
    join = _join(LoadShedder(store), stream.schema)
    join.finish()
    assert len(ShedStore(tmp_path, stream.schema)) == len(stream)
    join.commit()
    assert len(ShedStore(tmp_path, stream.schema)) == 0


def test_a_file_stays_while_one_of_its_tuples_waits(tmp_path: Path) -> None:
    """While the last tuple of a file waits in SB or H_S, `commit` does not remove the file."""
    stream = cases.stream("string", cases.master_numbers()[:1])
    store = ShedStore(tmp_path, stream.schema)
    store.add(stream.to_batches()[0])
    shedder = LoadShedder(store)
    join = _join(shedder, stream.schema)
    shedder.replay(1, join.stream_buffer)
    join.commit()
    assert len(store) == 1, "it is in the stream buffer"
    join._stream_phase()  # noqa: SLF001 - the first half of a step
    assert join.pending == 1
    join.commit()
    assert len(store) == 1, "it waits for its page"
    join.step()
    join.commit()
    assert len(store) == 0


def test_tuples_stay_in_the_join_until_they_are_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk is full, shedding fails, and every tuple is still joined once."""
    stream = cases.stream("string", cases.master_numbers())
    join = _join(LoadShedder(ShedStore(tmp_path, stream.schema)), stream.schema)
    out = join.feed(stream.slice(0, 40).to_batches()[0])
    join.offer(stream.slice(40).to_batches()[0])
    waiting, offered = join.pending, len(join.stream_buffer)
    assert waiting
    assert offered
    shedder = LoadShedder(ShedStore(tmp_path, stream.schema))
    ways = (
        partial(shedder.shed_all, join.waiting, join.stream_buffer),
        partial(shedder._shed_buffer, offered, join.stream_buffer),  # noqa: SLF001
    )
    for shed in ways:
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", _full)
            with pytest.raises(OSError, match="No space left"):
                shed()
        assert (join.pending, len(join.stream_buffer)) == (waiting, offered)
    out += join.finish()
    assert multiset(out) == nested_loop_join(
        stream, cases.master("string", cases.master_numbers()), equal_keys(["a"], ["id_a"]), cases.COLUMNS, outer=True
    )


def _full(_: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("steps", range(4))
def test_a_file_replayed_in_part_gives_each_tuple_once(tmp_path: Path, steps: int) -> None:
    """When a file is replayed in part, this join and the next one output each of its tuples once."""
    stream = cases.stream("string", cases.SHAPES["skewed"](np.random.default_rng(3)))
    ShedStore(tmp_path, stream.schema).add(stream.to_batches()[0])
    first = _join(LoadShedder(ShedStore(tmp_path, stream.schema)), stream.schema)
    out = [row for _ in range(steps) for row in first.step()]
    first.shed_all()
    first.commit()
    left = ShedStore(tmp_path, stream.schema)
    assert sum(batch.num_rows for batch in out) + len(left) == len(stream)
    out += _join(LoadShedder(left), stream.schema).finish()
    assert multiset(out) == nested_loop_join(
        stream, cases.master("string", cases.master_numbers()), equal_keys(["a"], ["id_a"]), cases.COLUMNS, outer=True
    )


def test_an_unreadable_file_is_an_error_each_time(tmp_path: Path) -> None:
    """A join that cannot read a shed file fails at each attempt, and never seems finished."""
    stream = cases.stream("string", cases.master_numbers())
    store = ShedStore(tmp_path, stream.schema)
    store.add(stream.to_batches()[0])
    (tmp_path / store.names[0]).write_bytes(b"damaged, and no longer a file of tuples")
    join = _join(LoadShedder(store), stream.schema)
    for _ in range(2):
        with pytest.raises(ValueError, match="must match its checksum"):
            join.finish()
    assert join.shedder is not None
    assert join.shedder.to_replay == len(stream)


def test_sheds_all_in_files_of_a_portion(tmp_path: Path) -> None:
    """A file has at most 1/16 of h_S, because its tuples are in memory twice while they are written."""
    stream = cases.stream("string", cases.master_numbers())
    store = ShedStore(tmp_path, stream.schema)
    join = _join(LoadShedder(store), stream.schema)
    join.feed(stream.to_batches()[0])
    order = join.waiting.rows.identify(join.waiting.queue.oldest(join.pending)).tolist()
    join.shed_all()
    assert max(store.read(name).num_rows for name in store.names) <= join.waiting.slots // 16
    assert _shed(store) == order


def test_pairs_cannot_be_shed(tmp_path: Path) -> None:
    """A replayed tuple gets another number, so a join with a shedder refuses the output "pairs"."""
    stream = cases.stream("string", [])
    relation = MemoryRelation(cases.master("string", [1]), ["id_a"])
    shedder = LoadShedder(ShedStore(tmp_path, stream.schema.empty_table().select(["a"]).schema))
    with pytest.raises(ValueError, match="output must be \"rows\" with a shedder, got 'pairs'"):
        CHybridJoin(relation, stream.schema, "a", MEMORY, output="pairs", shedder=shedder)
