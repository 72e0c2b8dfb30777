"""The counts of batches: added up for the metrics page, and as a row for each batch in the table `batch_counters`.

A batch only queues its row. The thread that monitors the query writes the rows and their rollups, so that no batch
waits for that. docs/counters.md says what each column means.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pymysql
from kafka.errors import KafkaError

from foundation.connections import ANSWER_SECONDS, connect, login
from spark_apps.master.changes import waiting_changes
from spark_apps.monitoring import rollups
from spark_apps.monitoring.counters import columns, counter, rolls_of
from spark_apps.monitoring.lag import Lag
from spark_apps.monitoring.task_counts import TaskCounts

if TYPE_CHECKING:
    from collections.abc import Callable

    from foundation.connections import Connection
    from foundation.settings import Settings
    from spark_apps.master.snapshots import Snapshot
    from spark_apps.pipeline.definition import Pipeline

KEPT_DAYS = 30
MOST_REMOVED = 10_000  # rows that one look deletes: a look must stay short
MOST_WAITING = 1000  # rows that are queued while the warehouse does not answer
Row = dict[str, Any]


@dataclass(frozen=True)
class BatchFacts:
    """The counters of a batch that the driver measures, not its tasks."""

    batch_seconds: float = counter("seconds", "how long the newest batch took", rolls=("sum", "most"))
    snapshot_version: int = counter(
        "number", "version of the master data that the newest batch was joined with", rolls=("newest",)
    )
    snapshot_age_seconds: float = counter("seconds", "age of the newest batch's master data", rolls=("newest",))


@dataclass(frozen=True)
class TopicBacklog:
    """The topic's backlog; None while the broker or the warehouse does not answer."""

    lag_events: int | None = counter(
        "events", "events in the topic that no batch has read yet", rolls=("newest", "most")
    )


@dataclass(frozen=True)
class MasterBacklog:
    """The master data's backlog; None before the first batch, and without a change log."""

    changes_waiting: int | None = counter(
        "number", "committed changes of master rows that the snapshot lacks, at most 100,000", rolls=("newest", "most")
    )


@dataclass(frozen=True)
class ShedBacklog:
    """The events that wait in the shed store."""

    shed_waiting_events: int = counter("events", "shed events that wait on disk", rolls=("newest",))
    shed_damaged_events: int = counter(
        "events", "shed events that wait in a file that cannot be read", rolls=("newest",)
    )
    shed_oldest_seconds: float = counter("seconds", "age of the oldest shed event that waits", rolls=("newest",))


@dataclass(frozen=True)
class ApplicationFacts:
    """Counters of the application itself: on the metrics page only, not in the table."""

    batches: int = counter("number", "batches that were done")
    memory_budget_bytes: int = counter("bytes", "memory that a worker's join is allowed to use", rolls=("newest",))
    batch_age_seconds: float | None = counter(
        "seconds", "time since the newest batch while events wait, 0 while none waits", rolls=("newest",)
    )


ROLLS = rolls_of((TaskCounts, BatchFacts, TopicBacklog, ShedBacklog, MasterBacklog))


class BatchCounters:
    """The counters of one application.

    Args:
        config: the settings of the running system.
        pipeline: the application's pipeline.
        clock: the time in UTC.

    Attributes:
        pipeline: the application's pipeline.
        totals: the counts of all tasks since the application started.
        batches: the number of batches since then.
        newest: the counts of the newest batch's tasks.
        facts: the driver's counters of the newest batch; None before the first batch.
        finished_at: when the newest batch ended; before the first batch, when the application started.
        lag: the topic's backlog.
        shed: the events that wait in the shed store.
        master: the changes of master rows that wait for a refresh.
    """

    def __init__(
        self, config: Settings, pipeline: Pipeline, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self.pipeline = pipeline
        self.totals = TaskCounts()
        self.batches = 0
        self.newest = TaskCounts()
        self.facts: BatchFacts | None = None
        self.finished_at = datetime.now(UTC)
        self.lag, self.shed, self.master = TopicBacklog(None), ShedBacklog(), MasterBacklog(None)
        self._position: int | None = None  # in the change log, of the newest batch's snapshot
        self._rows: deque[Row] = deque(maxlen=MOST_WAITING)
        self._loader = login("loader", config)
        self._asks_lag = Lag(config.kafka_bootstrap, pipeline.source.topic)
        self._lock = threading.Lock()
        self._clock = clock

    def add(self, incarnation: int, batch: int | None, snapshot: Snapshot, seconds: float, counts: TaskCounts) -> None:
        """Add a batch's counts to the totals and queue its row.

        Args:
            incarnation: the number of the topic's incarnation.
            batch: Spark's number of the batch; None for a job that only replayed shed events.
            snapshot: the snapshot that the batch was joined with.
            seconds: how long the batch took.
            counts: the sum of its tasks' counts.
        """
        now = self._clock()
        age = (now - datetime.fromisoformat(snapshot.published_at)).total_seconds()
        facts = BatchFacts(seconds, snapshot.version, age)
        which = {"pipeline": self.pipeline.name, "source": incarnation, "batch": batch, "finished_at": now}
        with self._lock:
            self.batches += 1
            self.totals += counts
            self.newest, self.facts, self.finished_at = counts, facts, now
            self._position = snapshot.position
            self._rows.append({**which, **columns(counts), **columns(facts)})

    def look(self, incarnation: int, shed: ShedBacklog) -> None:
        """Measure the lag, and write the queued rows.

        A service that does not answer is asked again at the next look; the stream does not stop for it.

        Args:
            incarnation: the number of the topic's incarnation.
            shed: the events that wait in the shed store.
        """
        self.shed = shed
        try:
            with connect(self._loader, answer_seconds=ANSWER_SECONDS) as connection:
                behind = self._asks_lag.behind(_next_offsets(connection, self.pipeline.name, incarnation))
                self.lag = TopicBacklog(behind)
                self.master = self._master_backlog(connection)
                self._write(connection)
        except (pymysql.MySQLError, KafkaError):
            self.lag = TopicBacklog(None)

    def _master_backlog(self, connection: Connection) -> MasterBacklog:
        if self._position is None:
            return MasterBacklog(None)
        try:
            return MasterBacklog(waiting_changes(connection, self.pipeline.master, self._position))
        except pymysql.MySQLError:  # no change log, or none that the loader may read
            return MasterBacklog(None)

    def _write(self, connection: Connection) -> None:
        rows = list(self._rows)
        if not rows:
            return
        now = {**columns(self.lag), **columns(self.shed), **columns(self.master)}
        complete = [{**row, **now} for row in rows]
        names = list(complete[0])
        statement = f"INSERT INTO batch_counters ({', '.join(names)}) VALUES ({', '.join(['%s'] * len(names))})"  # noqa: S608  # our own names
        with connection.cursor() as cursor:
            cursor.executemany(statement, [[_as_json(value) for value in row.values()] for row in complete])
            rollups.add(cursor, self.pipeline.name, complete, ROLLS)
            connection.commit()
            with self._lock:
                for row in rows:
                    if self._rows and self._rows[0] is row:  # a full queue drops its oldest row by itself
                        self._rows.popleft()
            cursor.execute(
                "DELETE FROM batch_counters WHERE pipeline = %s AND finished_at < UTC_TIMESTAMP() - INTERVAL %s DAY "
                "LIMIT %s",
                (self.pipeline.name, KEPT_DAYS, MOST_REMOVED),
            )
            rollups.remove_old(cursor, self.pipeline.name)
        connection.commit()


def _as_json(value: object) -> object:
    return json.dumps(value) if isinstance(value, dict) else value


def _next_offsets(connection: Connection, pipeline: str, incarnation: int) -> dict[int, int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT kafka_partition, next_offset FROM progress WHERE pipeline = %s AND source = %s",
            (pipeline, incarnation),
        )
        return dict(cursor.fetchall())
