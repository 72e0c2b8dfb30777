"""No tuple waits without bound: each one leaves a join within a number of iterations that is known when it comes.

An iteration reads the page of the oldest tuple, so the oldest tuple leaves. Hence a tuple of a HYBRIDJOIN kind leaves
within as many iterations as tuples are in the join when it comes, at most h_S and those of the stream buffer. While
tuples are shed, another page is read for at most AFTER_SHED iterations after each shed. But a shed takes a file of the
oldest tuples, so no more sheds happen than h_S has files until the tuple itself is the oldest.

A tuple of a MESHJOIN kind leaves k iterations after it was read, when it has met all k pages. k iterations read k
chunks, so the tuple is read after as many iterations as it takes to read those before it in the stream buffer.
"""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from semistream.joins import CHybridJoin, MeshJoin, RMeshJoin, SemiStreamJoin
from semistream.load_shedder import AFTER_SHED, LoadShedder, UpfrontShedder
from semistream.memory_split import Shares
from semistream.relation import MemoryRelation
from semistream.shed_store import ShedStore

from tests.semistream import cases

PORTION = 4
ITERATIONS = 150
WITH_SHEDDING = 600  # the bound is larger
PAGES = MemoryRelation(cases.master("int64", cases.master_numbers()), ["id_a"], page_rows=4)
STREAM = cases.stream("int64", []).schema
RARE, *OTHERS = cases.master_numbers()

arrivals = st.lists(
    st.lists(st.one_of(st.none(), st.integers(0, cases.DOMAIN + 20)), max_size=40), min_size=1, max_size=8
)
# Each time a tuple of six pages comes, so that some always wait. None is of the rare key's page.
elsewhere = OTHERS[3:]
trickle = [[elsewhere[(5 * i + 8 * j) % len(elsewhere)] for j in range(6)] for i in range(56)]


def _longest_excess(join: SemiStreamJoin, flood: int, batches: list[list[Any]], iterations: int) -> int:
    """Offer more than is joined before the first iterations, then a rare tuple and others, then the batches in turn.

    What the stream buffer has no room for is left out. Return by how many iterations a tuple was in the join for longer
    than its bound; 0 or less if none was.
    """
    came: dict[int, tuple[int, int]] = {}
    count, excess = 0, -iterations
    for iteration in range(iterations):
        turn = iteration - flood
        keys = OTHERS if turn < 0 else batches[turn % len(batches)] if turn else [RARE, *elsewhere[:20]]
        numbers = pa.array(range(count, count + len(keys)), pa.int64())
        batch = cases.stream("int64", keys).set_column(1, STREAM.field("n"), numbers).combine_chunks()
        for piece in (p for b in batch.to_batches() for p in join.stream_buffer.pieces(b)):
            if join.stream_buffer.has_room(piece):
                join.offer(piece)
                came.update(dict.fromkeys(piece["n"].to_pylist(), (iteration, _bound(join))))
        count += len(keys)
        join.step()
        here = _numbers(join)
        came = {n: came.get(n, (iteration, _bound(join) + 1)) for n in here}  # the others were joined or shed
        excess = max([excess, *(iteration + 1 - first - bound for first, bound in came.values())])
    return excess


def _bound(join: SemiStreamJoin) -> int:
    """Return the iterations within which the newest tuple of the stream buffer leaves the join."""
    slots, buffered = join.waiting.slots, len(join.stream_buffer)
    if isinstance(join, MeshJoin):
        used = slots if isinstance(join, RMeshJoin) else slots // join.k * join.k
        return -(-(buffered + 1) * join.k // used) + join.k
    bound = join.pending + buffered
    if isinstance(join, CHybridJoin) and type(join.shedder) is LoadShedder:
        bound += AFTER_SHED * -(-slots // max(slots // PORTION, 1))
    return bound


def _numbers(join: SemiStreamJoin) -> list[int]:
    """List the tuples that are in the join."""
    slots = join.waiting.queue.oldest(join.pending)
    waiting = pa.RecordBatch.from_arrays(join.waiting.rows.take(slots), schema=join.kept)
    buffered = join.stream_buffer.newest(len(join.stream_buffer))
    return [n for batch in (waiting, *buffered) for n in batch["n"].to_pylist()]


@settings(max_examples=5, deadline=None, derandomize=True)
@given(flood=st.integers(0, 12), batches=arrivals)
@example(flood=0, batches=trickle)
@example(flood=12, batches=trickle)
@pytest.mark.parametrize("algorithm", cases.JOINS)
def test_a_tuple_leaves_every_join_within_its_bound(
    algorithm: type[SemiStreamJoin], flood: int, batches: list[list[Any]]
) -> None:
    """Whatever comes, and however much of it, no tuple is in a join for more iterations than its bound."""
    join = algorithm(PAGES, STREAM, "a", cases.MEMORY, how="left", columns=["price"])
    assert _longest_excess(join, flood, batches, ITERATIONS) <= 0


@settings(max_examples=5, deadline=None, derandomize=True)
@given(flood=st.integers(0, 12), batches=arrivals)
@example(flood=0, batches=trickle)
@example(flood=12, batches=trickle)
@pytest.mark.parametrize("kind", [LoadShedder, UpfrontShedder])
def test_a_tuple_is_joined_or_shed_within_its_bound(
    tmp_path_factory: pytest.TempPathFactory, kind: type[LoadShedder], flood: int, batches: list[list[Any]]
) -> None:
    """With a shedder, under high and low load, no tuple is in the join for more iterations than its bound."""
    shedder = kind(ShedStore(tmp_path_factory.mktemp("shed"), STREAM), portion=PORTION)
    shares = Shares(stream_buffer=0.4, front_stage=0.0)
    join = CHybridJoin(PAGES, STREAM, "a", 30_000, how="left", shedder=shedder, shares=shares)
    assert _longest_excess(join, flood, batches, WITH_SHEDDING) <= 0
