"""A pipeline's query as Spark runs it: it reads the topic, and hands each batch to the enricher."""

from __future__ import annotations

import threading
import time
import uuid
from functools import partial
from typing import TYPE_CHECKING

import pymysql

from foundation.connections import ANSWER_SECONDS, connect, login
from spark_apps.enriching import shedding
from spark_apps.enriching.enricher import Enricher
from spark_apps.enriching.messages import SPARK_SCHEMA
from spark_apps.enriching.report import TaskReport, collector
from spark_apps.events.reader import EventReader
from spark_apps.master import snapshots
from spark_apps.monitoring.batch_counters import ShedBacklog
from spark_apps.monitoring.progress_line import ProgressLine
from spark_apps.pipeline.tables import check_tables
from spark_apps.pipeline.topics import incarnation_of
from spark_apps.running.checkpoint import check_logs, has_open_batch
from spark_apps.running.retention import check_nothing_lost
from spark_apps.running.session import kafka_options, log_from, message_columns
from spark_apps.running.stop import LOOK_SECONDS, StopAskedError
from spark_apps.warehouse.version import check_version

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark import Accumulator
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from foundation.settings import Settings
    from spark_apps.monitoring.batch_counters import BatchCounters
    from spark_apps.pipeline.definition import Pipeline
    from spark_apps.running.lease import Lease
    from spark_apps.running.stop import Stop

    MakeEnricher = Callable[..., Enricher]

TRIGGER = "200 milliseconds"
# Spark's default runs sixteen programs for each batch to find out about symbolic links: half of a small batch's time.
CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
POLL_RECORDS = 20_000  # the consumer's default of 500 is slow
POLL_WAIT_MS = 10  # longest wait of the broker for enough events to answer a fetch; Kafka's default is 500
# Of a partition in one fetch, compressed. A poll decompresses all of it, and large events can expand a thousandfold.
# The first is Kafka's default.
FETCH_BYTES, SMALL_FETCH_BYTES = 1024 * 1024, 128 * 1024
MOST_EVENTS_A_BATCH = 500_000  # however large the backlog: a batch is one transaction in each task


class Query:
    """A pipeline's query, from one start to its end.

    Args:
        config: the settings.
        pipeline: its definition.
        stop: knows whether the application is asked to stop.
        counters: gets the counts of each batch.
        make_enricher: makes the function that runs in each task.

    Attributes:
        batches_done: the number of batches since the query's start.
        shed: the events that wait in the shed store, as of the last look; they decide whether segments are replayed.

    Raises:
        FreshetError: something that the query needs is missing or damaged.
    """

    def __init__(
        self,
        config: Settings,
        pipeline: Pipeline,
        stop: Stop,
        counters: BatchCounters,
        make_enricher: MakeEnricher = Enricher,
    ) -> None:
        self.pipeline = pipeline
        self.batches_done = 0
        self.shed = shedding.Waiting()
        self._config = config
        self._stop = stop
        self._counters = counters
        self._make_enricher = make_enricher
        self._loader = login("loader", config)
        check_version(self._loader)
        self._marker = check_tables(self._loader, pipeline)
        self._incarnation = incarnation_of(config.kafka_bootstrap, pipeline.source.topic, self._loader)
        self._schema = EventReader(pipeline.source.fields, pipeline.master.key).schema
        self._reports: Accumulator[TaskReport] | None = None
        self._one_at_a_time = threading.Lock()
        check_logs(self.checkpoint)
        check_nothing_lost(self._incarnation, self.checkpoint)

    @property
    def checkpoint(self) -> Path:
        """The folder of Spark's checkpoint for this incarnation of the topic."""
        return self._config.folders.checkpoints(self.pipeline.name) / str(self._incarnation.number)

    @property
    def sheds(self) -> Path:
        """The folder of the pipeline's shed events."""
        return self._config.folders.shed(self.pipeline.name)

    def run(self, session: SparkSession, lease: Lease) -> None:
        """Run the query until it ends or a stop is requested.

        A query that waits for events is stopped here. One that goes from batch to batch is stopped by its next batch.
        Between batches, shed events are replayed.
        """
        query = self._start(session)
        print(f"enrich_stream: pipeline {self.pipeline.name!r} runs", flush=True)
        progress = ProgressLine(self._counters)
        try:
            while not query.awaitTermination(LOOK_SECONDS):
                # Spark does not notice that a topic was recreated once it has as many messages as the old one had.
                self._incarnation.check()
                self.look()
                if line := progress.due():
                    print(f"enrich_stream: {line}", flush=True)
                lease.keep()
                idle = not query.status["isTriggerActive"]
                if self._stop.look() and idle:
                    return
                if idle and self.shed.segments and not self._has_open_batch():
                    self._replay(session)
        finally:
            query.stop()
            self.look()  # the last batch's row

    def look(self) -> None:
        """Read the shed backlog and write the counters. A warehouse that does not answer is asked again next time."""
        try:
            with connect(self._loader, answer_seconds=ANSWER_SECONDS) as connection:
                self.shed = shedding.waiting(connection, self.pipeline.name, self._schema)
        except pymysql.MySQLError:
            pass  # keep the answer of the last look
        backlog = ShedBacklog(self.shed.events, self.shed.damaged, self.shed.oldest_seconds)
        self._counters.look(self._incarnation.number, backlog)

    def _start(self, session: SparkSession) -> StreamingQuery:
        """Start the query where its checkpoint says that the last one ended.

        An open batch might have failed because memory could not hold it. So it and the backlog after it are read in
        small fetches, which cost more. That query ends by itself, and the next one reads in large fetches. Only the
        next one replays shed events, because events of the open batch can be among them.
        """
        with connect(self._loader, answer_seconds=ANSWER_SECONDS) as connection:
            shedding.sweep(connection, self.sheds, self.pipeline.name)
        session.conf.set("spark.sql.streaming.checkpointFileManagerClass", CHECKPOINTS)
        catch_up = self._has_open_batch()
        if catch_up:
            print("enrich_stream: a batch is not done: reading it and the backlog in small fetches first", flush=True)
        trigger = {"availableNow": True} if catch_up else {"processingTime": TRIGGER}
        return (
            session.readStream.format("kafka")
            .options(**kafka_options(self._config, self.pipeline.source))
            .option("kafka.max.poll.records", POLL_RECORDS)
            .option("kafka.fetch.max.wait.ms", POLL_WAIT_MS)
            .option("kafka.max.partition.fetch.bytes", SMALL_FETCH_BYTES if catch_up else FETCH_BYTES)
            .option("maxOffsetsPerTrigger", MOST_EVENTS_A_BATCH)
            .load()
            .select(*message_columns(self.pipeline.source.origins))
            .writeStream.foreachBatch(partial(self.write, replays=not catch_up))
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(**trigger)
            .start()
        )

    def write(self, batch: DataFrame, batch_id: int, *, replays: bool) -> None:
        """Enrich one batch; if a stop is requested, raise StopAskedError instead."""
        if self._stop.look():
            # Spark would log the end of its query as a failure, with a stack trace.
            log_from("OFF", batch.sparkSession.sparkContext, "MicroBatchExecution")
            raise StopAskedError("a stop was requested before this batch; the next start begins with it")
        self._enrich(batch, batch_id, replays=replays)

    def _replay(self, session: SparkSession) -> None:
        """Replay shed events while no events come: run a batch without events, which has all its time for them."""
        tasks = session.sparkContext.defaultParallelism
        nothing = session.range(0, tasks, numPartitions=tasks).where("id < 0")
        self._enrich(nothing, None, replays=True)

    def _enrich(self, batch: DataFrame, batch_id: int | None, *, replays: bool) -> None:
        """Enrich one batch, joined with the snapshot that is the newest when it begins."""
        folder = self._config.folders.snapshots(self.pipeline.name)
        with self._one_at_a_time, snapshots.hold(folder) as snapshot:
            began = time.monotonic()
            context = batch.sparkSession.sparkContext
            self._reports = self._reports or collector(context)
            self._reports.value = TaskReport()
            enricher = self._make_enricher(
                pipeline=self.pipeline,
                incarnation=self._incarnation,
                snapshot=snapshot.path,
                plan=snapshot.plan,
                marker=self._marker,
                sheds=self.sheds,
                job=uuid.uuid4().hex if replays and self.shed.segments else None,
                report=self._reports.add,
            )
            # At its end, each task reads pages for the few events that still wait: have no more tasks than run at once.
            enriched = batch.coalesce(context.defaultParallelism).mapInArrow(enricher, SPARK_SCHEMA)
            if self.pipeline.enriched.topic is None:
                enriched.write.format("noop").mode("append").save()
            else:
                target = {"kafka.bootstrap.servers": self._config.kafka_bootstrap}
                enriched.write.format("kafka").options(**target, topic=self.pipeline.enriched.topic).save()
            report = self._reports.value
            seconds = time.monotonic() - began
            self._counters.add(self._incarnation.number, batch_id, snapshot, seconds, report.counts)
        self.batches_done += 1
        for line in report.set_aside:
            print(f"enrich_stream: {line}", flush=True)
        if report.replayed_segments:
            with connect(self._loader, answer_seconds=ANSWER_SECONDS) as connection:
                shedding.remove_replayed(connection, self.sheds, report.replayed_segments)

    def _has_open_batch(self) -> bool:
        return has_open_batch(self.checkpoint, self.pipeline.source.topic)
