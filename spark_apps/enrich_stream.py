"""The long-running application: events from Kafka, enriched, into the warehouse and the enriched topic.

spark-submit enrich_stream.py --pipeline sales
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
import uuid
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import psutil
import pymysql
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from services.settings import SettingsError, settings
from services.warehouse import ANSWER_SECONDS, connect, login
from spark_apps import shedding
from spark_apps.batch_counters import BatchCounters
from spark_apps.checkpoint import CheckpointError, has_open_batch
from spark_apps.control import AlreadyRunningError, Lease
from spark_apps.enrichment import Enricher
from spark_apps.failures import lasts, reason
from spark_apps.joiner import JoinError, check_join
from spark_apps.master import snapshots
from spark_apps.messages import SPARK_SCHEMA
from spark_apps.metrics_page import page
from spark_apps.metrics_server import serve_metrics
from spark_apps.pipeline import PipelineError, load_pipeline
from spark_apps.retention import LostEventsError, check_nothing_lost
from spark_apps.session import create_session, kafka_options
from spark_apps.tables import TableError, check_tables
from spark_apps.topics import TopicError, source_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from services.settings import Settings
    from spark_apps.pipeline import Pipeline
    from spark_apps.topics import Source

ASKED_BY = "FRESHET_ASKED_BY"  # the process on whose behalf this runs; without it, nobody waits for the end
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
LOOK_SECONDS = 1
LONGEST_STOP_SECONDS = 20.0
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 30.0
MOST_TRIES = 4  # of what fails for a reason that time does not cure


class GaveUpError(Exception):
    """What failed again and again; the message has the reason."""


class StopAskedError(Exception):
    """A batch is not begun because the application is asked to stop."""


MAY_PASS = (PySparkException, Py4JJavaError, pymysql.MySQLError, TopicError)
CANNOT_GO_ON = (
    SettingsError, PipelineError, TopicError, TableError, AlreadyRunningError, snapshots.SnapshotError, JoinError,
    pymysql.MySQLError, LostEventsError, CheckpointError, GaveUpError,
)  # fmt: skip


def main() -> None:
    """Run until an operator asks to stop; what keeps it from that is one line and exit code 1."""
    parser = argparse.ArgumentParser(description="Enrich a pipeline's stream until it is asked to stop.")
    parser.add_argument("--pipeline", default="sales", help="the name of a file in pipelines/ (default: sales)")
    try:
        run(settings(), load_pipeline(parser.parse_args().pipeline))
    except CANNOT_GO_ON as failure:
        sys.exit(f"enrich_stream: {reason(failure)}")
    print("enrich_stream: stopped as asked", flush=True)


def run(chosen: Settings, pipeline: Pipeline) -> None:
    """Enrich the pipeline's stream, holding the right to do so; start it again after what may pass."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: stop.set())
    stream = prepare(chosen, pipeline, stop)  # what cannot work at all is said before Spark starts
    with snapshots.hold(chosen.state / "snapshots" / pipeline.name) as snapshot:
        check_join(pipeline, snapshot.path)
    counters = BatchCounters(chosen, pipeline)
    with Lease(login("loader", chosen), pipeline.name) as lease, serve_metrics(chosen, lambda: page(counters)):
        session = create_session(f"enrich_stream {pipeline.name}")
        ended = threading.Event()
        threading.Thread(target=break_off, args=(session, stop, ended), daemon=True).start()
        pause, tries = FIRST_PAUSE_SECONDS, 0
        while not stop.is_set():
            batches = counters.batches
            try:
                stream = prepare(chosen, pipeline, stop)
                query = stream.start(session, counters)
                print(f"enrich_stream: pipeline {pipeline.name!r} runs", flush=True)
                watch(query, stream, lease, counters, session)
                pause, tries = FIRST_PAUSE_SECONDS, 0
            except MAY_PASS as failure:
                if stop.is_set():
                    break
                if counters.batches > batches:
                    pause, tries = FIRST_PAUSE_SECONDS, 0
                tries = tries + 1 if lasts(failure) else 0
                said = reason(failure).rstrip(".")
                if tries == MOST_TRIES:
                    counters.look(stream.source.number)
                    raise GaveUpError(
                        f"{said}. It failed so {tries} times: this does not pass by itself. Correct it and start "
                        "again; nothing is lost, it goes on where it was."
                    ) from failure
                print(f"enrich_stream: {said}. It goes on in {pause:.0f} s.", flush=True)
                rest(pause, lease, stop)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        ended.set()
        counters.look(stream.source.number)  # the last batch's row
        session.stop()


def watch(query: StreamingQuery, stream: Stream, lease: Lease, counters: BatchCounters, session: SparkSession) -> None:
    """Wait until the query has ended; asked to stop, it ends between two batches.

    Spark takes a topic that was made again, and has as many messages as the old one had, for the old one.
    A query that waits for events is ended here, one that goes from batch to batch by its next batch (Stream.write).
    Between batches, events that were shed are taken back.
    """
    try:
        while not query.awaitTermination(LOOK_SECONDS):
            stream.source.check()
            counters.look(stream.source.number)
            look(lease, stream.stop)
            waits = not query.status["isTriggerActive"]
            if stream.stop.is_set() and waits:
                return
            if waits and counters.shed.segments:
                stream.take_back(counters, session)
    finally:
        query.stop()


def break_off(session: SparkSession, stop: threading.Event, ended: threading.Event) -> None:
    """Bound what a stop takes: a batch that goes on long after the request, as on a warehouse that hangs, is ended."""
    stop.wait()
    if not ended.wait(LONGEST_STOP_SECONDS):
        print(
            f"enrich_stream: it has not ended {LONGEST_STOP_SECONDS:.0f} s after the request to stop. What it does "
            "is broken off, the next start does it again.",
            flush=True,
        )
        session.sparkContext.cancelAllJobs()


def rest(seconds: float, lease: Lease, stop: threading.Event) -> None:
    """Wait, unless asked to stop meanwhile."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and not stop.wait(LOOK_SECONDS):
        look(lease, stop)


def look(lease: Lease, stop: threading.Event) -> None:
    """See whether the application is asked to stop."""
    if lease.stop_requested() or is_orphan():
        stop.set()


def is_orphan() -> bool:
    """Tell whether the process that asked for this application, an Airflow task, has gone without ending it."""
    asked_by = os.environ.get(ASKED_BY)
    return asked_by is not None and not psutil.pid_exists(int(asked_by))


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
        open_batch = has_open_batch(self.checkpoint)
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
            .writeStream.foreachBatch(partial(self.write, counters, not open_batch))
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(**trigger)
            .start()
        )

    def write(self, counters: BatchCounters, takes_back: bool, batch: DataFrame, batch_id: int) -> None:  # noqa: FBT001
        """Enrich one batch, unless asked to stop."""
        if self.stop.is_set():
            raise StopAskedError("asked to stop before this batch, which is the next start's first")
        self.enrich(counters, batch, batch_id, takes_back=takes_back)

    def take_back(self, counters: BatchCounters, session: SparkSession) -> None:
        """Use the time while nothing comes: a batch without events has all of it for those that were shed."""
        tasks = session.sparkContext.defaultParallelism
        nothing = session.range(0, tasks, numPartitions=tasks).where("id < 0")
        self.enrich(counters, nothing, None, takes_back=True)

    def enrich(self, counters: BatchCounters, batch: DataFrame, batch_id: int | None, *, takes_back: bool) -> None:
        """Enrich one batch; it joins with the newest snapshot that there is when it begins."""
        with self.one_at_a_time, snapshots.hold(self.chosen.state / "snapshots" / self.pipeline.name) as snapshot:
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
        return self.chosen.state / "checkpoints" / self.pipeline.name / str(self.source.number)

    @property
    def sheds(self) -> Path:
        """The folder of the pipeline's shed events."""
        return self.chosen.state / "shed" / self.pipeline.name


def prepare(chosen: Settings, pipeline: Pipeline, stop: threading.Event) -> Stream:
    """Check what a start needs of the services, so that what is missing is said in one line."""
    loader = login("loader", chosen)
    marker = check_tables(loader, pipeline)
    source = source_of(chosen.kafka_bootstrap, pipeline.source.topic, loader)
    stream = Stream(chosen, pipeline, source, marker, stop)
    check_nothing_lost(source, stream.checkpoint)
    return stream


if __name__ == "__main__":
    main()
