"""What batches counted: added up for the metrics page, and a row for each in the table `batch_counters`.

The query's thread hands a batch's counts over and goes on; rows are written by the thread that watches the query, so
that no batch waits for them. docs/counters.md says what each column means.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pymysql
from kafka.errors import KafkaError

from foundation.connections import ANSWER_SECONDS, connect, login
from spark_apps.enriching.shedding import Waiting, waiting
from spark_apps.events.reader import EventReader
from spark_apps.watching.lag import Lag
from spark_apps.watching.task_counts import PHASES, AddCounts, TaskCounts

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark import Accumulator, SparkContext

    from foundation.connections import Connection
    from foundation.settings import Settings
    from spark_apps.master.snapshots import Snapshot
    from spark_apps.pipeline.definition import Pipeline

KEPT_DAYS = 30
MOST_REMOVED = 10_000  # at a look, which is to be short
MOST_WAITING = 1000  # rows that are kept while the warehouse is away
Row = dict[str, Any]


class BatchCounters:
    """The counters of one application.

    Attributes:
        pipeline: whose they are.
        totals: what tasks counted since the application started.
        batches: how many there were.
        newest: the newest batch's row, None before there is one.
        lag: how many events of the topic wait, None when that cannot be known now.
        shed: what waits in the shed store.
    """

    def __init__(self, chosen: Settings, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.totals = TaskCounts()
        self.batches = 0
        self.newest: Row | None = None
        self.lag: int | None = None
        self.shed = Waiting()
        self._schema = EventReader(pipeline.source.fields, pipeline.master.key).schema
        self._tasks: Accumulator[TaskCounts] | None = None
        self._rows: deque[Row] = deque(maxlen=MOST_WAITING)
        self._loader = login("loader", chosen)
        self._lag = Lag(chosen.kafka_bootstrap, pipeline.source.topic)
        self._lock = threading.Lock()

    def begin(self, context: SparkContext) -> Callable[[TaskCounts], None]:
        """Begin a batch and return what its tasks report to."""
        if self._tasks is None:
            self._tasks = context.accumulator(TaskCounts(), AddCounts())
        self._tasks.value = TaskCounts()
        return self._tasks.add

    def end(self, source: int, batch: int | None, snapshot: Snapshot, seconds: float) -> TaskCounts:
        """Take in what the batch's tasks have counted, and return it."""
        counts = TaskCounts() if self._tasks is None else self._tasks.value
        now = datetime.now(UTC)
        row = {
            "pipeline": self.pipeline.name,
            "source": source,
            "batch": batch,
            "finished_at": now,
            "seconds": seconds,
            "events": counts.events,
            "enriched": counts.enriched,
            "unmatched": counts.unmatched,
            "rejected": counts.rejected.total(),
            "rejected_by_reason": json.dumps(counts.rejected),
            "cache_hits": counts.cache_hits,
            "not_cached": counts.not_cached,
            "absent": counts.absent,
            "without_key": counts.without_key,
            "pages_read": counts.pages_read,
            "shed": counts.shed,
            "taken_back": counts.taken_back,
            **{f"{phase}_seconds": counts.seconds[phase] for phase in PHASES},
            "latency_mean_seconds": counts.latency_total / counts.events if counts.events else None,
            "latency_most_seconds": counts.latency_most if counts.events else None,
            "snapshot_version": snapshot.version,
            "snapshot_age_seconds": (now - datetime.fromisoformat(snapshot.published_at)).total_seconds(),
            "worker_bytes": counts.worker_bytes,
        }
        with self._lock:
            self.batches += 1
            self.totals += replace(counts, taken_segments=[], set_aside=[])  # those are of the batch alone
            self.newest = row
            self._rows.append(row)
        return counts

    def look(self, source: int) -> None:
        """Find out how far the stream is behind, and write the rows that wait.

        Nothing of this may stop the stream: a service that is away is asked again at the next look.
        """
        try:
            with connect(self._loader, answer_seconds=ANSWER_SECONDS) as connection:
                self.shed = waiting(connection, self.pipeline.name, self._schema)
                self.lag = self._lag.behind(_next_offsets(connection, self.pipeline.name, source))
                self._write(connection)
        except (pymysql.MySQLError, KafkaError):
            self.lag = None

    def _write(self, connection: Connection) -> None:
        rows = list(self._rows)
        if not rows:
            return
        columns = [*rows[0], "lag", "shed_waiting", "shed_damaged", "shed_oldest_seconds"]
        statement = f"INSERT INTO batch_counters ({', '.join(columns)}) VALUES ({', '.join(['%s'] * len(columns))})"  # noqa: S608  # our own names
        now = [self.lag, self.shed.events, self.shed.damaged, self.shed.oldest_seconds]
        with connection.cursor() as cursor:
            cursor.executemany(statement, [[*row.values(), *now] for row in rows])
            connection.commit()
            for _ in rows:
                self._rows.popleft()
            cursor.execute(
                "DELETE FROM batch_counters WHERE pipeline = %s AND finished_at < UTC_TIMESTAMP() - INTERVAL %s DAY "
                "LIMIT %s",
                (self.pipeline.name, KEPT_DAYS, MOST_REMOVED),
            )
        connection.commit()


def _next_offsets(connection: Connection, pipeline: str, source: int) -> dict[int, int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT kafka_partition, next_offset FROM progress WHERE pipeline = %s AND source = %s", (pipeline, source)
        )
        return dict(cursor.fetchall())
