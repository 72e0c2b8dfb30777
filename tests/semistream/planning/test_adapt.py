"""A running join is divided anew when the skew or the device changes; no tuple is lost."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from semistream.joins import CHybridJoin, HybridJoin, MeshJoin, OptimisedXHybridJoin
from semistream.memory_split import Shares
from semistream.modelled_disk import DISK_7200_RPM, SSD, ModelledDisk
from semistream.planning import PAPERS, Skew, Workload
from semistream.planning.adapt import Adaptation
from semistream.planning.tuner import tune
from semistream.relation import MemoryRelation

from tests.naive import multiset
from tests.semistream import cases

ROWS, PAGE_ROWS, MEMORY = 50_000, 100, 500_000
BATCH = 10_000
WORKLOAD = Workload.of_the_papers(ROWS, 0.3)


def relation() -> MemoryRelation:
    """Return R in the order of frequency, with the columns of the workload."""
    keys = np.arange(ROWS)
    return MemoryRelation(pa.table(dict.fromkeys(WORKLOAD.master.names, keys), WORKLOAD.master), ["id"], PAGE_ROWS)


@dataclass
class Run:
    """A join that was planned for a workload and a disk; its clock is modelled."""

    join: CHybridJoin
    disk: ModelledDisk
    seed: int = 0
    fed: int = 0
    out: int = 0

    @classmethod
    def planned(cls, workload: Workload, disk: ModelledDisk) -> Run:
        """Make the join."""
        plan = tune(workload, MEMORY, replace(PAPERS, disk=disk), joins=["chybridjoin"], page_rows=PAGE_ROWS).plan
        return cls(CHybridJoin(relation(), WORKLOAD.stream, "key", **plan.options()), disk)

    def seconds(self) -> float:
        """Return what the modelled machine has taken so far."""
        join = self.join
        tuples = join.stream_buffer.arrived - len(join.stream_buffer)
        return self.disk.seconds(join.relation.counters) + join.probed * PAPERS.look_up + tuples * PAPERS.handle

    def feed(self, exponent: float, batches: int, adaptation: Adaptation | None = None) -> float:
        """Feed batches with a skew, and return the rate of the second half."""
        heads = Skew(ROWS, exponent).head(np.arange(ROWS + 1))
        start, before = 0.0, 0
        for number in range(batches):
            if number == batches // 2:
                start, before = self.seconds(), self.fed
            self.seed += 1
            drawn = np.random.default_rng(self.seed).random(BATCH)
            keys = (np.searchsorted(heads, drawn, side="right") - 1).clip(0, ROWS - 1)
            arrays = [pa.array(keys), pa.array(keys), pa.array(keys, pa.int32())]
            self.out += sum(
                len(rows) for rows in self.join.feed(pa.RecordBatch.from_arrays(arrays, schema=WORKLOAD.stream))
            )
            if adaptation is not None:
                self.out += sum(len(rows) for rows in adaptation.look())
            self.fed += BATCH
        return (self.fed - before) / (self.seconds() - start)

    def end(self) -> None:
        """Join what waits; every tuple has come out once."""
        self.out += sum(len(rows) for rows in self.join.finish())
        assert self.out == self.fed


def test_a_join_follows_a_skew_that_moves() -> None:
    """Planned for a flat stream, it is as fast on a steep one as a join that was planned for that, within a tenth."""
    run = Run.planned(WORKLOAD, DISK_7200_RPM)
    flat_share = run.join.shares.front_stage
    adaptation = Adaptation(run.join, WORKLOAD, PAPERS, run.seconds)
    run.feed(0.3, 10, adaptation)
    assert adaptation.moves == 0
    adapted = run.feed(1.1, 100, adaptation)
    assert adaptation.moves >= 1
    assert adaptation.workload.exponent == pytest.approx(1.1, abs=0.07)
    assert run.join.shares.front_stage != flat_share
    run.end()
    steep = Run.planned(replace(WORKLOAD, exponent=1.1), DISK_7200_RPM)
    steep.feed(1.1, 20)
    planned = steep.feed(1.1, 60)
    assert adapted > 0.9 * planned
    fixed = Run.planned(WORKLOAD, DISK_7200_RPM)
    fixed.feed(0.3, 10)
    assert adapted > 1.05 * fixed.feed(1.1, 60)


def test_a_join_follows_a_device_that_becomes_slower() -> None:
    """On a disk instead of an SSD it reads larger partitions, about as fast as if it had been planned for the disk."""
    workload = replace(WORKLOAD, exponent=0.8)
    run = Run.planned(workload, SSD)
    adaptation = Adaptation(run.join, workload, replace(PAPERS, disk=SSD), run.seconds)
    run.feed(0.8, 20, adaptation)
    pages = run.join.disk_buffer.partition_pages
    run.disk = DISK_7200_RPM
    adapted = run.feed(0.8, 50, adaptation)
    assert run.join.disk_buffer.partition_pages > 2 * pages
    run.end()
    planned = Run.planned(workload, DISK_7200_RPM)
    planned.feed(0.8, 20)
    assert adapted > 0.85 * planned.feed(0.8, 30)


@settings(max_examples=15, deadline=None)
@given(shares=st.lists(st.floats(0, 0.8), min_size=1, max_size=5), kind=st.sampled_from(cases.KEY_KINDS))
@pytest.mark.parametrize("algorithm", [CHybridJoin, OptimisedXHybridJoin])
def test_no_tuple_is_lost_or_doubled_when_memory_is_divided_anew(
    algorithm: type[HybridJoin], shares: list[float], kind: Literal["int64", "string"]
) -> None:
    """In the middle of a stream, whatever the shares, the output is the oracle's, and memory stays in its budget."""
    table = cases.master(kind, cases.master_numbers())
    key = [name for name in table.column_names if name.startswith("id_")]
    stream = cases.stream(kind, cases.SHAPES["null keys"](np.random.default_rng(3)))
    on = [name.removeprefix("id_") for name in key]
    memory = 4 * cases.MEMORY
    join = algorithm(MemoryRelation(table, key, page_rows=8), stream.schema, on, memory, how="left", shares=Shares())
    out = []
    for number, batch in enumerate(stream.to_batches(max_chunksize=31)):
        out += join.feed(batch)
        out += join.divide_anew(shares[number % len(shares)])
        assert join.memory_used() <= memory
        assert join.shares.front_stage == shares[number % len(shares)]
    out += join.finish()
    assert multiset(out) == cases.expected(kind, "null keys", 3, "left")


def test_the_hottest_rows_stay_cached() -> None:
    """With half the front stage, the rows that the stream asks for most are still in memory, without a read."""
    join = CHybridJoin(relation(), WORKLOAD.stream, "key", MEMORY, shares=Shares(front_stage=0.2))
    join.preload()
    hot = np.arange(200)
    keys = np.tile(hot, 50)
    batch = pa.RecordBatch.from_arrays(
        [pa.array(keys), pa.array(keys), pa.array(keys, pa.int32())], schema=WORKLOAD.stream
    )
    join.feed(batch)
    join.divide_anew(0.1)
    reads, hits = join.relation.counters.pages_read, join.front_stage.hits
    join.feed(batch)
    assert join.front_stage.hits - hits == len(keys)
    assert join.relation.counters.pages_read == reads


@pytest.mark.parametrize("share", [0.97, -0.1, float("nan")])
def test_a_division_that_does_not_fit_changes_nothing(share: float) -> None:
    """The error comes before anything is joined: the tuples that wait still wait."""
    join = CHybridJoin(relation(), WORKLOAD.stream, "key", MEMORY)
    keys = np.arange(0, ROWS, 100)
    join.feed(
        pa.RecordBatch.from_arrays([pa.array(keys), pa.array(keys), pa.array(keys, pa.int32())], schema=WORKLOAD.stream)
    )
    waiting = join.pending
    with pytest.raises(ValueError, match="shares must not be negative, and their sum must be less than 1"):
        join.divide_anew(share)
    assert join.pending == waiting > 0
    assert sum(len(rows) for rows in join.finish()) == waiting


@pytest.mark.parametrize(("before", "after"), [(0.5, 0.6), (0.1, 0.8), (0.8, 0.1)])
def test_memory_stays_in_its_budget_while_it_is_divided_anew(before: float, after: float) -> None:
    """The old front stage is gone before the new one is made: the peak is that of a new join."""
    memory = 8_000_000
    r = relation()
    join = CHybridJoin(r, WORKLOAD.stream, "key", memory, shares=Shares(front_stage=before))
    join.preload()
    join.divide_anew(before)  # loads kernels
    del join
    tracemalloc.start()
    try:
        join = CHybridJoin(r, WORKLOAD.stream, "key", memory, shares=Shares(front_stage=before))
        join.preload()
        join.divide_anew(after)
        assert tracemalloc.get_traced_memory()[1] < 1.05 * memory
    finally:
        tracemalloc.stop()


def test_optimised_x_hybridjoin_keeps_the_first_rows_that_fit() -> None:
    """Its front stage has the first rows of R after a move, too: as many as that of a new join."""
    join = OptimisedXHybridJoin(relation(), WORKLOAD.stream, "key", MEMORY, shares=Shares(front_stage=0.1))
    for share in (0.8, 0.3):
        join.divide_anew(share)
        new = OptimisedXHybridJoin(relation(), WORKLOAD.stream, "key", MEMORY, shares=Shares(front_stage=share))
        first = np.arange(new.front_stage.cache.count)
        assert not join.front_stage.cache.lacks(first).any()


def test_an_adaptation_refuses_a_join_that_it_cannot_follow() -> None:
    """The error names the joins that it can."""
    join = MeshJoin(relation(), WORKLOAD.stream, "key", 4 * MEMORY)
    with pytest.raises(TypeError, match="join must be one of CHybridJoin, OptimisedXHybridJoin, got MeshJoin"):
        Adaptation(join, WORKLOAD, PAPERS)  # type: ignore[arg-type]


def test_a_join_without_a_front_stage_cannot_be_divided_anew() -> None:
    """The error names the join."""
    join = HybridJoin(relation(), WORKLOAD.stream, "key", MEMORY)
    with pytest.raises(
        ValueError, match="front_stage must belong to a join that has one, HybridJoin has none to change"
    ):
        join.divide_anew(0.5)
