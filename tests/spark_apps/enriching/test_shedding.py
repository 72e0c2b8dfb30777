"""Events that a batch has no time for are shed to disk and land later, exactly once, also after crashes.

Tasks are run as Spark runs them, by calling the function that it calls, on the real warehouse and over a page file
whose reads take time.
"""

from __future__ import annotations

import random
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from semistream import write_page_file

from foundation.connections import connect, login
from foundation.settings import settings
from services.waiting import wait_until
from spark_apps.enriching import shedding
from spark_apps.enriching.landing import Landing
from spark_apps.events.reader import EventReader
from spark_apps.pipeline.definition import read_pipeline
from spark_apps.pipeline.event_field import EventField
from spark_apps.pipeline.tables import create_tables
from spark_apps.pipeline.topics import create_topics, incarnation_of
from spark_apps.warehouse.bulk_load import loading
from tests.spark_apps.application import PIPELINES, sale
from tests.spark_apps.shedding_stream import KINDS, PRODUCTS, SlowStore, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from foundation.settings import Settings
    from spark_apps.enriching.landing import Spans
    from spark_apps.enriching.report import TaskReport

pytestmark = pytest.mark.integration
PAGE_ROWS = 10
PAGE_SECONDS = 0.05
PRELOADED = 2  # pages that a new join reads first, whatever time is left
BUDGET = 0.3
SECONDS = 60.0  # the longest wait for another thread


@pytest.fixture
def stream(migrated: Settings, tmp_path: Path) -> Stream:
    """Create a pipeline without rows, with master data of its own whose reads are slow."""
    pipeline = read_pipeline("counted", PIPELINES).model_copy(
        update={"name": "flooded", "batch_seconds": BUDGET, "memory_mb": 8}
    )
    owner = login("owner", migrated)
    create_tables(owner, pipeline)
    with connect(owner) as connection, connection.cursor() as cursor:
        cursor.execute("SET lock_wait_timeout = 20")  # a failed test can leave a transaction open
        for kind in KINDS:
            cursor.execute(f"TRUNCATE TABLE flooded_{kind}")
        cursor.execute("DELETE FROM progress WHERE pipeline = 'flooded'")
        cursor.execute("DELETE FROM shed_segment WHERE pipeline = 'flooded'")
    path = write_products(tmp_path / "v000001.pages", range(1, PRODUCTS + 1))
    assert settings() == migrated
    create_topics(migrated.kafka_bootstrap, pipeline)
    incarnation = incarnation_of(migrated.kafka_bootstrap, pipeline.source.topic, login("loader"))
    return Stream(pipeline, path, tmp_path / "shed", incarnation, SlowStore(PAGE_SECONDS))


def write_products(path: Path, numbers: range) -> Path:
    """Write master data with these products."""
    products = pa.table(
        {
            "product_id": pa.array(numbers, pa.int64()),
            "product_key": pa.array([n + 1000 for n in numbers], pa.int64()),
            "price_cents": pa.array([n * 5 for n in numbers], pa.int64()),
        }
    )
    write_page_file(path, products.schema, products.to_batches(), ["product_id"], PAGE_ROWS)
    return path


def test_a_flood_is_shed_and_lands_later(stream: Stream) -> None:
    """With a slow store, tasks stay within their time and memory limits and shed the rest, which lands later."""
    for _ in range(3):
        counts = stream.run(0, stream.arrive(0, 20_000)).counts
        assert (counts.pages_read - PRELOADED - 1) * PAGE_SECONDS <= BUDGET
        assert counts.events == counts.enriched + counts.unmatched + counts.rejected.total() + counts.shed
        stream.assert_accounted()
        join = stream.joins.idle  # the join that this process keeps, as a worker does
        assert join
        assert join.pending == 0
        assert join.memory_used() <= stream.pipeline.memory_mb * 2**20
        assert all(int(path.stem.split("-")[1]) <= join.waiting.slots // 16 for path in stream.files())
        if not counts.shed:
            break
    shed = stream.positions("shed")
    assert len(shed) > 10_000
    assert stream.positions("enriched")
    waiting = stream.waiting()
    assert (waiting.segments, waiting.events) == (len(stream.files()), len(shed))
    assert 0 <= waiting.oldest_seconds < 240

    stream.store.seconds = 0.0
    stream.replay_all()
    stream.assert_all_landed()
    assert set(stream.messages.values()) == {1}


def test_an_event_that_can_be_read_later_moves_and_one_that_cannot_any_more_stays(stream: Stream) -> None:
    """After a change of the fields, a batch that runs again leaves each event in exactly one table."""
    offsets = stream.arrive(0, 200)
    stream.run(0, offsets)
    stream.replay_all()
    assert stream.positions("rejected") == {(0, 7), (0, 107)}
    stream.sent[0][7], stream.sent[0][8] = sale(7), b"garbage"
    stream.run(0, offsets)
    stream.replay_all()
    stream.assert_accounted()
    assert stream.positions("rejected") == {(0, 107)}
    assert {(0, 7), (0, 8)} <= stream.positions("enriched")


def test_what_is_replayed_has_a_limit_of_time_too(stream: Stream) -> None:
    """With a slow store, a replay job reads a few pages, oldest segment first, and sheds the rest again."""
    stream.run(0, stream.arrive(0, 2000))
    before = stream.positions("shed")
    assert before
    oldest = stream.waiting().oldest_at
    stream.another_worker()
    counts = stream.run(job="job").counts
    assert (counts.pages_read - PRELOADED - 1) * PAGE_SECONDS <= BUDGET
    assert counts.replayed == len(before)
    assert stream.positions("shed") < before
    assert len(stream.positions("shed")) == counts.shed
    assert stream.waiting().oldest_at in (oldest, None)
    stream.assert_accounted()


def test_two_tasks_take_different_segments(stream: Stream) -> None:
    """A task skips a segment that another open transaction has claimed, instead of waiting for it."""
    stream.run(0, stream.arrive(0, 2000))
    stream.another_worker()
    stream.run(1, stream.arrive(1, 2000))
    schema = EventReader(stream.pipeline.source.fields, stream.pipeline.master.key).schema
    with loading() as one, loading() as other:
        taken = [shedding.claim(connection, "flooded", schema, "job") for connection in (one, other)]
        assert all(taken)
        assert len({segment.number for segment in taken if segment}) == 2
        one.rollback()
        other.rollback()
    stream.assert_accounted()


def test_a_task_replays_events_from_between_those_of_another(stream: Stream) -> None:
    """Two tasks replay files with interleaved offsets, and neither waits for the other's transaction."""
    offsets = stream.arrive(0, 2000)
    for every_other in (offsets[::2], offsets[1::2]):
        stream.another_worker()
        stream.run(0, every_other)
    assert stream.waiting().segments == 2
    stream.store.seconds = 0.0
    one, reported = stream.task(0, (), "job")
    assert next(one)  # rows are loaded, nothing is committed
    other = stream.run(job="job")
    assert len(other.replayed_segments) == 1
    for _ in one:
        pass
    stream.remove([*reported[0].replayed_segments, *other.replayed_segments])
    stream.assert_accounted()
    assert stream.positions("shed") == set()


def test_tasks_replay_the_same_events_one_after_the_other(stream: Stream) -> None:
    """When a batch that ran twice has shed its events into two files, two replaying tasks do not deadlock."""
    offsets = stream.arrive(0, 1000)
    for _ in range(2):
        stream.another_worker()
        stream.run(0, offsets)
    assert stream.waiting().segments == 2
    assert stream.waiting().events > len(stream.positions("shed"))
    stream.have_time()
    with ThreadPoolExecutor(2) as aside, lock_waits() as waiting:
        first = threading.current_thread()
        other: list[Future[TaskReport]] = []

        class BesideTheOther(Landing):
            def land(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
                if threading.current_thread() is first and not other:  # this task has claimed its segment
                    other.append(aside.submit(stream.run, 0, (), "job"))
                    wait_until(lambda: None if waiting() == 1 else "not yet", what="the other to wait", seconds=SECONDS)
                return super().land(rows)

        stream.make_landing = BesideTheOther
        report = stream.run(job="job")
        stream.remove([*report.replayed_segments, *other[0].result(SECONDS).replayed_segments])
    assert stream.waiting().segments == 0
    stream.assert_accounted()
    assert stream.positions("shed") == set()


def test_files_with_the_same_events_in_other_orders_are_replayed_in_one(stream: Stream) -> None:
    """Two tasks that delete the same positions one by one do so in the same order, so they do not deadlock."""
    offsets = stream.arrive(0, 1000)
    for order in (offsets, offsets[::-1]):
        stream.another_worker()
        stream.run(0, order)
    assert stream.waiting().segments == 2
    stream.have_time()
    both = threading.Barrier(2, timeout=SECONDS)

    class AtOnce(Landing):
        listed = 1

        def end_wait(self, events: pa.RecordBatch) -> None:
            both.wait()
            super().end_wait(events)

    stream.make_landing = AtOnce
    with ThreadPoolExecutor(2) as aside:
        tasks = [aside.submit(stream.run, 0, (), "job") for _ in range(2)]
    assert sum(len(task.result().replayed_segments) for task in tasks) == 2
    stream.assert_accounted()
    assert stream.positions("shed") == set()


def test_an_event_that_is_replayed_while_its_batch_is_done_again_ends_in_one_table(
    stream: Stream, tmp_path: Path
) -> None:
    """A replay lands an event as unmatched while its batch enriches it: the event ends in one table only."""
    offsets = stream.arrive(0, 1000)
    stream.run(0, offsets)
    shed = [offset for _, offset in stream.positions("shed")]
    known = [offset for offset in shed if offset % 300 < PRODUCTS]  # so that the batch waits for the shed row only
    assert known
    stream.have_time()
    older = replace(stream, snapshot=write_products(tmp_path / "v000000.pages", range(1001, 1002)))
    with ThreadPoolExecutor(1) as aside, lock_waits() as waiting:
        first = threading.current_thread()
        batch: list[Future[TaskReport]] = []

        class WhileTheBatchWaits(Landing):
            def settle(self, spans: Spans) -> None:
                super().settle(spans)
                if spans and threading.current_thread() is first:  # nothing is committed
                    batch.append(aside.submit(stream.run, 0, known))
                    wait_until(lambda: None if waiting() == 1 else "not yet", what="the batch to wait", seconds=SECONDS)

        stream.make_landing = older.make_landing = WhileTheBatchWaits
        assert older.run(job="job").counts.unmatched == len(shed)
        assert batch[0].result(SECONDS).counts.enriched == len(known)
    stream.assert_accounted()
    assert stream.positions("shed") == set()


def test_two_attempts_at_the_same_events_leave_each_in_one_table(stream: Stream) -> None:
    """An old attempt sheds events that a newer one enriches at the same time: each event ends in one table only."""
    stream.run(0, stream.arrive(0, 1))
    with (
        ThreadPoolExecutor(2) as aside,
        lock_waits() as waiting,
        connect(login("owner")) as owner,
        connect(login("reader")) as dirty,
        owner.cursor() as lock,
        dirty.cursor() as look,
    ):
        look.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
        lock.execute("SELECT * FROM progress WHERE pipeline = 'flooded' FOR UPDATE")
        one = aside.submit(stream.run, 0, stream.arrive(0, 1000))
        wait_until(lambda: None if waiting() == 1 else "not yet", what="one to wait for its end", seconds=SECONDS)
        look.execute("SELECT kafka_offset FROM flooded_shed")
        shed = [offset for (offset,) in look.fetchall()]
        assert stream.positions("shed") == set()  # the rows are not committed, so other readers do not see them
        stream.store.seconds = 0.0
        other = aside.submit(stream.run, 0, shed)
        wait_until(lambda: None if waiting() == 2 else "not yet", what="the other, too", seconds=SECONDS)
        owner.rollback()
        assert one.result(SECONDS).counts.shed == len(shed) == other.result(SECONDS).counts.events > 0
    stream.assert_accounted()
    assert stream.positions("shed") == set()


def test_a_task_that_dies_before_its_commit_leaves_only_files(stream: Stream) -> None:
    """A sweep keeps the files of a live task and removes those of a dead one, whose events are read again."""
    offsets = stream.arrive(0, 2000)
    task, _ = stream.task(0, offsets)
    assert list(islice(task, 1))  # rows and segments are written, nothing is committed
    files = stream.files()
    assert files
    stream.sweep()
    assert stream.files() == files
    task.close()  # type: ignore[attr-defined]  # a generator's
    stream.assert_accounted()
    assert stream.positions("shed") == set()
    stream.sweep()
    assert list(stream.root.iterdir()) == []
    stream.run(0, offsets)
    stream.assert_accounted()
    stream.replay_all()
    stream.assert_all_landed()


@pytest.mark.parametrize("forgotten", ["nothing", "the rows"])
def test_a_crash_after_events_were_replayed_loses_and_doubles_nothing(stream: Stream, forgotten: str) -> None:
    """A crash after a replay loses and duplicates no event, before or after the rows of its segments are deleted."""
    stream.run(0, stream.arrive(0, 2000))
    stream.store.seconds = 0.0
    report = stream.run(job="killed")
    assert report.replayed_segments
    assert stream.waiting().events == 0
    stream.assert_accounted()
    if forgotten == "the rows":
        with connect(login("loader")) as connection, connection.cursor() as cursor:
            cursor.execute("DELETE FROM shed_segment WHERE segment IN %s", (report.replayed_segments,))
    stream.sweep()
    assert bool(stream.files()) == (forgotten == "nothing")
    stream.replay_all()  # if a crash kept the rows of segments, their events are replayed once more
    stream.assert_all_landed()


@pytest.mark.parametrize("seed", [1, 2])
def test_accounting_holds_after_every_step_whatever_they_are(stream: Stream, seed: int) -> None:
    """Each event is in exactly one table after any sequence of batches, retries, replays and crashes."""
    chance = random.Random(seed)  # noqa: S311  # a test's
    done: list[tuple[int, range]] = []
    shed = 0
    for step in range(30):
        if chance.random() < 0.5:
            stream.another_worker()
        stream.store.seconds = chance.choice([0.0, PAGE_SECONDS])
        job = chance.choice([None, f"job {step}"])
        what = chance.choice(["batch", "batch", "again", "die", "take back", "take back and die", "start"])
        if what == "batch" or not done:
            partition = chance.choice([0, 1])
            done.append((partition, stream.arrive(partition, chance.randrange(1, 800))))
            stream.remove(stream.run(*done[-1], job).replayed_segments)
        elif what == "again":
            partition, offsets = chance.choice(done)
            stream.remove(stream.run(partition, offsets[chance.randrange(len(offsets)) :], job).replayed_segments)
        elif what == "die":
            task, _ = stream.task(*chance.choice(done), job)
            list(islice(task, chance.choice([0, 1])))
            task.close()  # type: ignore[attr-defined]  # a generator's
        elif what == "take back":
            stream.remove(stream.run(job=f"job {step}").replayed_segments)
        elif what == "take back and die":
            stream.run(job=f"job {step}")
        else:
            stream.sweep()
        stream.assert_accounted()
        shed += len(stream.positions("shed"))
    assert shed
    stream.store.seconds = 0.0
    stream.replay_all()
    stream.sweep()
    stream.assert_all_landed()


def test_a_segment_of_other_fields_is_not_read(stream: Stream) -> None:
    """A segment written with other fields waits until the pipeline's file has these fields again."""
    stream.run(0, stream.arrive(0, 2000))
    events = stream.waiting().events
    fields = {**stream.pipeline.source.fields, "colour": EventField(type="string")}
    changed = stream.pipeline.model_copy(
        update={"source": stream.pipeline.source.model_copy(update={"fields": fields})}
    )
    stream.another_worker()  # the application was started again
    was, stream.pipeline = stream.pipeline, changed
    assert stream.waiting() == shedding.Waiting()
    assert stream.run(job="job").counts.replayed == 0
    stream.another_worker()  # the application was started once more
    stream.pipeline = was
    assert stream.waiting().events == events


@pytest.mark.parametrize("damage", ["gone", "spoilt", "cut", "empty"])
@pytest.mark.parametrize("mended", ["restored", "read again"])
def test_a_file_that_cannot_be_read_is_set_aside_and_its_events_wait(stream: Stream, damage: str, mended: str) -> None:
    """A damaged file is set aside with a message; once it is restored or its events are read again, they land."""
    batches = [(partition, stream.arrive(partition, 2000)) for partition in (0, 1)]
    for batch in batches:
        stream.another_worker()
        stream.run(*batch)
    file, *others = stream.files()
    assert others
    content = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes({"spoilt": content[:-9] + b"?" + content[-8:], "cut": content[:-1], "empty": b""}[damage])
    stream.store.seconds = 0.0
    report = stream.run(job="job")
    stream.remove(report.replayed_segments)
    stream.replay_all()
    ((segment, events),) = stream.query("SELECT segment, events FROM shed_segment WHERE pipeline = 'flooded'")
    (line,) = report.set_aside
    assert str(file.relative_to(stream.root)) in line
    assert f"set aside as segment {segment}; those of its {events} events" in line
    stream.assert_accounted()
    assert len(stream.positions("shed")) == events
    assert (stream.waiting().segments, stream.waiting().damaged, stream.waiting().events) == (0, events, events)

    if mended == "restored":
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
        change = f"UPDATE shed_segment SET damage = NULL WHERE segment = {segment}"
    else:
        for batch in batches:
            stream.run(*batch)
        change = f"DELETE FROM shed_segment WHERE segment = {segment}"
    with connect(login("owner")) as connection, connection.cursor() as cursor:
        cursor.execute(change)
    stream.replay_all()
    stream.sweep()
    stream.assert_all_landed()


def test_the_age_of_what_waits_is_its_oldest_events(stream: Stream) -> None:
    """The age of what waits counts from the oldest event's Kafka timestamp, not from the time of shedding."""
    two_hours = timedelta(hours=2)
    waiting = shedding.Waiting(1, 5, oldest_at=(datetime.now(UTC) - two_hours).replace(tzinfo=None))
    assert waiting.oldest_seconds == pytest.approx(two_hours.total_seconds(), abs=60)
    assert stream.waiting().oldest_seconds == 0.0


@contextmanager
def lock_waits() -> Iterator[Callable[[], int]]:
    """Yield a function that counts the transactions that wait for a lock."""
    with connect(login("root")) as connection, connection.cursor() as cursor:

        def waiting() -> int:
            cursor.execute("SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'")
            return int(cursor.fetchall()[0][0])

        yield waiting
