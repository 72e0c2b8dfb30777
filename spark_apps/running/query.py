"""A pipeline's stream as Spark runs it: a query that reads the topic, and what is done with each of its batches."""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from foundation.connections import ANSWER_SECONDS, connect, login
from spark_apps.enriching import shedding
from spark_apps.enriching.enricher import Enricher
from spark_apps.enriching.messages import SPARK_SCHEMA
from spark_apps.master import snapshots
from spark_apps.pipeline.tables import check_tables
from spark_apps.pipeline.topics import source_of
from spark_apps.running.checkpoint import check_logs, has_open_batch
from spark_apps.running.lease import is_stop_requested
from spark_apps.running.retention import check_nothing_lost
from spark_apps.running.session import kafka_options, log_from

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from foundation.settings import Settings
    from spark_apps.pipeline.definition import Pipeline
    from spark_apps.pipeline.topics import Source
    from spark_apps.watching.batch_counters import BatchCounters

TRIGGER = "200 milliseconds"
# Spark's choice runs sixteen programs for each batch to find out about symbolic links: half of a small batch's time.
CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
POLL_RECORDS = 20_000  # the consumer's default of 500 is slow
# A task asks for events that are there. The default of 500 lets the broker wait for more behind them.
POLL_WAIT_MS = 10
# Of a partition at a time, as packed; a poll unpacks what came, and large events may be packed a thousandfold.
# The first is Kafka's default.
FETCH_BYTES, SMALL_FETCH_BYTES = 1024 * 1024, 128 * 1024
MOST_EVENTS_A_BATCH = 500_000  # however far behind: a batch is a transaction in each task, and done again after a crash


class StopAskedError(Exception):
    """A batch is not begun because the application is asked to stop."""


@dataclass(frozen=True)
class Stream:
    """Everything that a query is started with."""

    chosen: Settings
    pipeline: Pipeline
    source: Source
    marker: str
    stop: threading.Event
    one_at_a_time: threading.Lock = field(default_factory=threading.Lock)

    def start(self, session: SparkSession, counters: BatchCounters) -> StreamingQuery:
        """Start the query where its checkpoint says that the last one ended.

        A batch that is not done may have been more than the memory holds. It is read in small fetches, which cost
        more, and so is all that waits behind it; then that query ends by itself, for one with large fetches. Events
        that were shed are left until then: those of the batch may be among them.
        """
        with connect(login("loader", self.chosen), answer_seconds=ANSWER_SECONDS) as connection:
            shedding.sweep(connection, self.sheds, self.pipeline.name)
        topic = self.pipeline.source.topic
        session.conf.set("spark.sql.streaming.checkpointFileManagerClass", CHECKPOINTS)
        open_batch = has_open_batch(self.checkpoint, topic)
        if open_batch:
            print("enrich_stream: a batch is not done: it and what waits is read in small fetches first", flush=True)
        trigger = {"availableNow": True} if open_batch else {"processingTime": TRIGGER}
        return (
            session.readStream.format("kafka")
            .options(**kafka_options(self.chosen, topic))
            .option("kafka.max.poll.records", POLL_RECORDS)
            .option("kafka.fetch.max.wait.ms", POLL_WAIT_MS)
            .option("kafka.max.partition.fetch.bytes", SMALL_FETCH_BYTES if open_batch else FETCH_BYTES)
            .option("maxOffsetsPerTrigger", MOST_EVENTS_A_BATCH)
            .load()
            .select("partition", "offset", "value", "timestamp")
            .writeStream.foreachBatch(partial(self.write, counters, takes_back=not open_batch))
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(**trigger)
            .start()
        )

    def write(self, counters: BatchCounters, batch: DataFrame, batch_id: int, *, takes_back: bool) -> None:
        """Enrich one batch, unless asked to stop."""
        if is_stop_requested(login("loader", self.chosen), self.pipeline.name):
            self.stop.set()
        if self.stop.is_set():
            # Spark would log the end of its query as a failure, with a stack trace.
            log_from("OFF", batch.sparkSession.sparkContext, "MicroBatchExecution")
            raise StopAskedError("asked to stop before this batch, which is the next start's first")
        self.enrich(counters, batch, batch_id, takes_back=takes_back)

    def take_back(self, counters: BatchCounters, session: SparkSession) -> None:
        """Use the time while nothing comes: a batch without events has all of it for those that were shed."""
        tasks = session.sparkContext.defaultParallelism
        nothing = session.range(0, tasks, numPartitions=tasks).where("id < 0")
        self.enrich(counters, nothing, None, takes_back=True)

    def enrich(self, counters: BatchCounters, batch: DataFrame, batch_id: int | None, *, takes_back: bool) -> None:
        """Enrich one batch; it joins with the newest snapshot that there is when it begins."""
        with self.one_at_a_time, snapshots.hold(self.chosen.folders.snapshots(self.pipeline.name)) as snapshot:
            began = time.monotonic()
            context = batch.sparkSession.sparkContext
            report = counters.begin(context)
            job = uuid.uuid4().hex if takes_back and counters.shed.segments else None
            enricher = Enricher(self.pipeline, self.source, snapshot.path, self.marker, self.sheds, job, report)
            # A task ends with reading pages for the few that still wait: no more tasks than work at once.
            enriched = batch.coalesce(context.defaultParallelism).mapInArrow(enricher, SPARK_SCHEMA)
            if self.pipeline.enriched.topic is None:
                enriched.write.format("noop").mode("append").save()
            else:
                target = {"kafka.bootstrap.servers": self.chosen.kafka_bootstrap, "topic": self.pipeline.enriched.topic}
                enriched.write.format("kafka").options(**target).save()
            counts = counters.end(self.source.number, batch_id, snapshot, time.monotonic() - began)
        for line in counts.set_aside:
            print(f"enrich_stream: {line}", flush=True)
        if counts.taken_segments:
            with connect(login("loader", self.chosen), answer_seconds=ANSWER_SECONDS) as connection:
                shedding.forget(connection, self.sheds, counts.taken_segments)

    @property
    def checkpoint(self) -> Path:
        """Spark's folder for how far the source was read."""
        return self.chosen.folders.checkpoints(self.pipeline.name) / str(self.source.number)

    @property
    def sheds(self) -> Path:
        """The folder of the pipeline's shed events."""
        return self.chosen.folders.shed(self.pipeline.name)


def prepare(chosen: Settings, pipeline: Pipeline, stop: threading.Event) -> Stream:
    """Check what a start needs of the services, so that what is missing is said in one line."""
    loader = login("loader", chosen)
    marker = check_tables(loader, pipeline)
    source = source_of(chosen.kafka_bootstrap, pipeline.source.topic, loader)
    stream = Stream(chosen, pipeline, source, marker, stop)
    check_logs(stream.checkpoint)
    check_nothing_lost(source, stream.checkpoint)
    return stream
