"""The front stage holds what is frequent now, and remembers a bounded number of absent keys."""

import numpy as np
import pyarrow as pa
import pytest
from semistream.frequency_recorder import FrequencyRecorder
from semistream.joins import CachedIndexNestedLoopJoin, CHybridJoin, CMeshJoin, SemiStreamJoin
from semistream.memory_split import Shares
from semistream.relation import MemoryRelation

ROWS = 4_000
HOT = 100
RECOVERY = 20_000  # tuples within which the hit rate recovers when the hot set is replaced
STREAM = pa.schema([pa.field("key", pa.int64())])


def _rows_in_order() -> np.ndarray:
    """Return the keys of R, page after page."""
    return np.random.default_rng(1).permutation(ROWS)


def _join(algorithm: type[SemiStreamJoin]) -> SemiStreamJoin:
    """Make a join whose front stage holds a few more tuples than there are hot keys."""
    keys = _rows_in_order()
    relation = MemoryRelation(pa.table({"id": keys, "value": keys}), ["id"], page_rows=40)
    join = algorithm(relation, STREAM, "key", 50_000, shares=Shares(front_stage=0.16))
    assert HOT < join.split.cache_slots < 2 * HOT
    return join


def _hit_rate(join: SemiStreamJoin, hot: np.ndarray, tuples: int, rng: np.random.Generator) -> float:
    """Feed tuples, four of five with a hot key, and return the share that the cache matches."""
    before = join.front_stage.hits
    for _ in range(tuples // 500):
        keys = np.where(rng.random(500) < 0.8, rng.choice(hot, 500), rng.integers(0, ROWS, 500))
        join.feed(pa.RecordBatch.from_arrays([pa.array(keys)], schema=STREAM))
    return (join.front_stage.hits - before) / tuples


@pytest.mark.parametrize("algorithm", [CHybridJoin, CMeshJoin])
def test_follows_a_hot_set_that_is_replaced(algorithm: type[SemiStreamJoin]) -> None:
    """When the hot keys change, the hit rate falls and recovers within `RECOVERY` tuples."""
    rng = np.random.default_rng(2)
    join = _join(algorithm)
    first, second = np.arange(HOT), np.arange(1000, 1000 + HOT)
    _hit_rate(join, first, 20_000, rng)
    settled = _hit_rate(join, first, 5_000, rng)
    assert settled > 0.7
    assert _hit_rate(join, second, 500, rng) < 0.3
    _hit_rate(join, second, RECOVERY, rng)
    assert _hit_rate(join, second, 5_000, rng) > 0.95 * settled


@pytest.mark.parametrize("algorithm", [CHybridJoin, CMeshJoin])
def test_begins_with_the_first_rows_of_r_when_asked_to(algorithm: type[SemiStreamJoin]) -> None:
    """Preloaded rows match at once, and `preload` reads only the pages that fit into the cache."""
    join = _join(algorithm)
    slots = join.split.cache_slots
    join.preload()
    pages = join.relation.counters.pages_read
    assert pages == -(-slots // join.relation.page_rows)
    join.preload()  # the cache is full already
    keys = np.random.default_rng(3).permutation(_rows_in_order()[:slots])
    joined = join.feed(pa.RecordBatch.from_arrays([pa.array(keys)], schema=STREAM))
    assert join.pending == 0
    assert join.relation.counters.pages_read == pages
    assert sorted(value for batch in joined for value in batch["value"].to_pylist()) == sorted(keys.tolist())


def test_follows_the_stream_although_it_began_with_rows_that_nobody_asks_for() -> None:
    """Preloaded rows that no stream tuple matches are overwritten."""
    rng = np.random.default_rng(2)
    join = _join(CHybridJoin)
    join.preload()
    _hit_rate(join, np.arange(HOT), RECOVERY, rng)
    assert _hit_rate(join, np.arange(HOT), 5_000, rng) > 0.7


def test_the_threshold_falls_while_the_cache_has_room() -> None:
    """A cache that is not full admits less and less frequent tuples."""
    recorder = FrequencyRecorder(64)
    recorder.threshold = 5
    for expected in (4, 3, 2, 1, 1):
        recorder.adapt(1, room=True)
        assert recorder.threshold == expected


def test_the_threshold_rises_under_churn_and_falls_again_in_calm() -> None:
    """The threshold rises when many tuples are overwritten, and falls when none are."""
    recorder = FrequencyRecorder(64)
    before = recorder.threshold
    for _ in range(8):
        chosen, _ = recorder.victims(np.full(8, 10, dtype=np.int32))
        assert len(chosen) == 8
    recorder.adapt(8 * 64, room=False)
    assert recorder.threshold == before + 1
    for _ in range(3):  # a full cache never takes what a single tuple waits for
        recorder.adapt(8 * 64, room=False)
        assert recorder.threshold == before == 2


def test_a_rarer_tuple_does_not_overwrite_a_more_frequent_one() -> None:
    """A rarer tuple overwrites a victim only after the victim's frequency has faded."""
    recorder = FrequencyRecorder(8)
    recorder.frequency[:] = 16
    chosen, _ = recorder.victims(np.array([1], dtype=np.int32))
    assert len(chosen) == 0
    for _ in range(4):
        chosen, slots = recorder.victims(np.array([1], dtype=np.int32))
    assert len(chosen) == len(slots) == 1


def test_absent_keys_are_remembered_within_bounds() -> None:
    """Any number of unknown keys leaves memory as it is, and the latest one is still known."""
    join = _join(CHybridJoin)
    used = join.memory_used()
    slots = join.split.absent_slots
    join.front_stage.remember_absent(np.arange(10_000, 10_000 + 100 * slots))
    join.front_stage.remember_absent(np.array([77_777]))
    assert join.memory_used() == used
    assert join.relation.counters.look_ups == 0
    join.feed(pa.RecordBatch.from_arrays([pa.array([77_777] * 100)], schema=STREAM))
    assert join.front_stage.known_absent == 100
    join.front_stage.forget_absent()
    join.feed(pa.RecordBatch.from_arrays([pa.array([77_777])], schema=STREAM))
    assert join.front_stage.known_absent == 100


class _Growing(MemoryRelation):
    """A relation that says when it may have new rows."""

    version = 0


@pytest.mark.parametrize("algorithm", [CHybridJoin, CachedIndexNestedLoopJoin])
def test_absent_keys_are_looked_up_again_when_r_may_have_new_rows(algorithm: type[SemiStreamJoin]) -> None:
    """A join looks an absent key up once for each version of its relation."""
    keys = _rows_in_order()
    relation = _Growing(pa.table({"id": keys, "value": keys}), ["id"], page_rows=40)
    join = algorithm(relation, STREAM, "key", 50_000)
    absent = pa.RecordBatch.from_arrays([pa.array([77_777])], schema=STREAM)
    for version, look_ups in ((0, 1), (0, 1), (1, 2), (1, 2)):
        relation.version = version
        join.feed(absent)
        join.finish()
        assert relation.counters.look_ups == 2 * look_ups, "the oldest tuple's key is located, then it is dismissed"
