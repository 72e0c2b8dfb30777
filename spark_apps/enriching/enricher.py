"""What a task does with its share of a batch: read the events, join them with the master data, land the results.

It runs in Spark's Python workers, on Arrow batches. A task writes its whole share in one transaction, and every row's
primary key is its event's position. So a task that runs twice, or dies and runs again, leaves the same rows as one run.
A pipeline can limit a batch's time: events that still wait for a page when it is over are shed. A task that has time
left replays shed events, segment by segment, each in a transaction of its own.
"""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from semistream import TimedCHybridJoin

from spark_apps.enriching import shedding
from spark_apps.enriching.landing import Landing, Spans, widen
from spark_apps.enriching.report import TaskReport
from spark_apps.enriching.task_join import TaskJoin
from spark_apps.enriching.worker_join import borrowed_join
from spark_apps.events.reader import EventReader
from spark_apps.monitoring.arrivals import Arrivals
from spark_apps.pipeline.definition import TOPIC_POSITION
from spark_apps.warehouse.bulk_load import loading

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

    import pyarrow as pa

    from foundation.connections import Connection
    from spark_apps.enriching.worker_join import BorrowJoin
    from spark_apps.monitoring.task_counts import TaskCounts
    from spark_apps.pipeline.definition import Pipeline
    from spark_apps.pipeline.join_plan import JoinPlan
    from spark_apps.pipeline.topics import TopicIncarnation

UNLIMITED_REPLAY_SECONDS = 1.0  # for a pipeline without a limit: its events were shed while it had one
LEAST_SHARE = 0.1  # of a batch's time: a task with less time left begins no further segment


@dataclass(frozen=True)
class Enricher:
    """The function that Spark calls in each task; it is pickled and sent to the workers.

    Attributes:
        pipeline: its definition.
        incarnation: of the topic that the events come from.
        snapshot: the page file of the master data to join with.
        plan: how to join with it.
        marker: a master column that is NOT NULL: where it is null after the join, nothing matched.
        sheds: the folder of the pipeline's shed events.
        job: identifies the batch's Spark job in the rows of segments that it replays; None to replay no segment.
        report: is called with a task's report when the task is done.
        borrow: lends the worker's join for the time of a task.
        make_landing: makes what lands the rows of one transaction.
    """

    pipeline: Pipeline
    incarnation: TopicIncarnation
    snapshot: Path
    plan: JoinPlan
    marker: str
    sheds: Path
    job: str | None
    report: Callable[[TaskReport], None]
    borrow: BorrowJoin = borrowed_join
    make_landing: Callable[..., Landing] = Landing

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Land the events, and yield the messages for the enriched topic."""
        report = TaskReport()
        counts = report.counts
        reader = EventReader(self.pipeline.source.fields, self.pipeline.master.key)
        with self.borrow(self.pipeline, reader.schema, self.snapshot, self.plan) as join, counts.of_join(join):
            task_join = TaskJoin(join, reader.schema, counts)
            with counts.timed("join"):
                join.preload()  # a snapshot's first pages have the most frequent rows
            began = time.monotonic()
            limit = self.pipeline.batch_seconds
            yield from self._enrich(batches, reader, _Work(task_join, counts, began + (limit or math.inf)))
            if self.job is not None:
                since = began if counts.events else time.monotonic()
                work = _Work(task_join, counts, since + (limit or UNLIMITED_REPLAY_SECONDS))
                while work.seconds_left > LEAST_SHARE * (work.deadline - since):
                    if not (yield from self._replay(self.job, work, report)):
                        break
        counts.measure_worker()
        self.report(report)

    def _enrich(self, batches: Iterable[pa.RecordBatch], reader: EventReader, work: _Work) -> Iterator[pa.RecordBatch]:
        """Land the task's share of the batch."""
        spans: Spans = {}
        arrivals = Arrivals()
        counts = work.counts

        def readable() -> Iterator[pa.RecordBatch]:
            for batch in counts.awaited(batches):
                with counts.timed("read"):
                    widen(spans, batch["partition"], batch["offset"])
                    arrivals.note(batch["timestamp"])
                    beside = {origin: batch[origin] for origin in self.pipeline.source.origins}
                    read = reader.read(batch["partition"], batch["offset"], batch["value"], beside)
                counts.events += batch.num_rows
                landing.reject(batch, read.rejected)
                yield read.events

        with (
            loading() as connection,
            self._landing(connection, self.incarnation.number, work, lambda: arrivals.first) as landing,
        ):
            for rows in work.join.joined(readable()):
                for message in landing.land(rows):
                    self.incarnation.check()  # a message cannot be taken back
                    yield message
            self.incarnation.check()  # after everything was read, before the commit
            landing.advance(spans)
            landing.settle(spans)
            with counts.timed("load"):
                connection.commit()
        arrivals.count_latency(counts)

    def _replay(self, job: str, work: _Work, report: TaskReport) -> Generator[pa.RecordBatch, None, bool]:
        """Land one segment's events, shed again those that time does not allow; return whether there was a segment."""
        spans: Spans = {}
        with loading() as connection:
            segment = shedding.claim(connection, self.pipeline.name, work.join.schema, job)
            if segment is None:
                return False
            try:
                in_order = [(name, "ascending") for name in TOPIC_POSITION]
                events = segment.read(self.sheds, work.join.schema).sort_by(in_order)
            except (OSError, ValueError) as problem:
                report.set_aside.append(shedding.set_aside(connection, self.pipeline.name, segment, problem))
                return True
            widen(spans, events["kafka_partition"], events["kafka_offset"])
            with self._landing(connection, segment.incarnation, work, lambda: segment.oldest_at) as landing:
                landing.end_wait(events)
                for rows in work.join.joined([events]):
                    yield from landing.land(rows)
                landing.settle(spans)
                with work.counts.timed("load"):
                    connection.commit()
        work.counts.replayed += events.num_rows
        report.replayed_segments.append(segment.number)
        return True

    @contextmanager
    def _landing(
        self, connection: Connection, incarnation: int, work: _Work, oldest: Callable[[], datetime]
    ) -> Iterator[Landing]:
        """Yield a Landing for events of one incarnation; it registers shed events in the same transaction."""
        landing = self.make_landing(connection, self.pipeline, incarnation, self.marker, work.counts)

        def register(file: str, events: pa.RecordBatch) -> None:
            landing.put_off(file, events, oldest())

        store = partial(shedding.EventStore, schema=work.join.schema, events_of=work.join.events_of, register=register)
        with shedding.TaskShedder(self.sheds, store) as shedder:
            if isinstance(work.join.join, TimedCHybridJoin):
                work.join.join.limit(work.deadline, shedder.shed)
            yield landing


@dataclass(frozen=True)
class _Work:
    """What a task works with: its join, its counts, and the time when it stops reading pages."""

    join: TaskJoin
    counts: TaskCounts
    deadline: float

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline, negative after it."""
        return self.deadline - time.monotonic()
