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
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil
import pymysql
from kafka.errors import KafkaError
from pyspark.errors import StreamingQueryException

from services.settings import SettingsError, settings
from services.warehouse import login
from spark_apps.control import AlreadyRunningError, Lease
from spark_apps.enrichment import Enricher
from spark_apps.master import snapshots
from spark_apps.messages import SPARK_SCHEMA
from spark_apps.pipeline import PipelineError, load_pipeline
from spark_apps.session import create_session, kafka_options
from spark_apps.tables import TableError, check_tables
from spark_apps.topics import TopicError, source_number

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from services.settings import Settings
    from spark_apps.pipeline import Pipeline

ASKED_BY = "FRESHET_ASKED_BY"  # the process on whose behalf this runs; without it, nobody waits for the end
TRIGGER = "200 milliseconds"
POLL_RECORDS = 20_000  # the consumer's default of 500 is slow
MOST_EVENTS_A_BATCH = 500_000  # however far behind: a batch is a transaction in each task, and done again after a crash
LOOK_SECONDS = 1
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 30.0
MAY_PASS = (StreamingQueryException, pymysql.MySQLError, KafkaError)
CANNOT_START = (
    SettingsError, PipelineError, TopicError, TableError, AlreadyRunningError, snapshots.SnapshotError,
    pymysql.MySQLError, KafkaError,
)  # fmt: skip


class StopAskedError(Exception):
    """A batch is not begun because the application is asked to stop."""


def main() -> None:
    """Run until an operator asks to stop; what cannot start is one line and exit code 1."""
    parser = argparse.ArgumentParser(description="Enrich a pipeline's stream until it is asked to stop.")
    parser.add_argument("--pipeline", default="sales", help="the name of a file in pipelines/ (default: sales)")
    try:
        run(settings(), load_pipeline(parser.parse_args().pipeline))
    except CANNOT_START as failure:
        sys.exit(f"enrich_stream: {failure}")
    print("enrich_stream: stopped as asked, between two batches", flush=True)


def run(chosen: Settings, pipeline: Pipeline) -> None:
    """Enrich the pipeline's stream, holding the right to do so; start it again after what may pass."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: stop.set())
    prepare(chosen, pipeline, stop)  # what cannot work at all is said before Spark starts
    with Lease(login("loader", chosen), pipeline.name) as lease:
        session = create_session(f"enrich_stream {pipeline.name}")
        pause = FIRST_PAUSE_SECONDS
        while not stop.is_set():
            started = time.monotonic()
            try:
                query = prepare(chosen, pipeline, stop).start(session)
                print(f"enrich_stream: pipeline {pipeline.name!r} runs", flush=True)
                watch(query, lease, stop)
            except MAY_PASS as failure:
                if stop.is_set():
                    break
                ran_well = time.monotonic() - started > LONGEST_PAUSE_SECONDS
                pause = FIRST_PAUSE_SECONDS if ran_well else min(2 * pause, LONGEST_PAUSE_SECONDS)
                print(f"enrich_stream: {first_line(failure)}; goes on in {pause:.0f} s", flush=True)
                stop.wait(pause)
        session.stop()


def watch(query: StreamingQuery, lease: Lease, stop: threading.Event) -> None:
    """Wait until the query has ended; asked to stop, it ends between two batches.

    A query that waits for events is ended here, one that goes from batch to batch by its next batch (Stream.write).
    """
    try:
        while not query.awaitTermination(LOOK_SECONDS):
            if lease.stop_requested() or is_orphan():
                stop.set()
            if stop.is_set() and not query.status["isTriggerActive"]:
                return
    finally:
        query.stop()


def is_orphan() -> bool:
    """Tell whether the process that asked for this application, an Airflow task, has gone without ending it."""
    asked_by = os.environ.get(ASKED_BY)
    return asked_by is not None and not psutil.pid_exists(int(asked_by))


def first_line(failure: Exception) -> str:
    """Say in one line what ended a query."""
    lines = [line.strip() for line in str(failure).splitlines()]
    return next((line for line in lines if line), type(failure).__name__)


@dataclass(frozen=True)
class Stream:
    """Everything that a query is started with."""

    chosen: Settings
    pipeline: Pipeline
    source: int
    marker: str
    stop: threading.Event

    def start(self, session: SparkSession) -> StreamingQuery:
        """Start the query where its checkpoint says that the last one ended."""
        topic = self.pipeline.source.topic
        checkpoint = self.chosen.state / "checkpoints" / self.pipeline.name / str(self.source)
        return (
            session.readStream.format("kafka")
            .options(**kafka_options(self.chosen, topic))
            .option("kafka.max.poll.records", POLL_RECORDS)
            .option("maxOffsetsPerTrigger", MOST_EVENTS_A_BATCH)
            .load()
            .select("partition", "offset", "value")
            .writeStream.foreachBatch(self.write)
            .option("checkpointLocation", str(checkpoint))
            .trigger(processingTime=TRIGGER)
            .start()
        )

    def write(self, batch: DataFrame, _batch_id: int) -> None:
        """Enrich one batch, unless asked to stop; it joins with the newest snapshot that there is when it begins."""
        if self.stop.is_set():
            raise StopAskedError("asked to stop before this batch, which is the next start's first")
        with snapshots.hold(self.chosen.state / "snapshots" / self.pipeline.name) as snapshot:
            enricher = Enricher(self.pipeline, self.source, snapshot.path, self.marker)
            enriched = batch.mapInArrow(enricher, SPARK_SCHEMA)
            if self.pipeline.enriched.topic is None:
                enriched.write.format("noop").mode("append").save()
            else:
                target = {"kafka.bootstrap.servers": self.chosen.kafka_bootstrap, "topic": self.pipeline.enriched.topic}
                enriched.write.format("kafka").options(**target).save()


def prepare(chosen: Settings, pipeline: Pipeline, stop: threading.Event) -> Stream:
    """Check everything that a start needs, so that what is missing is said in one line."""
    loader = login("loader", chosen)
    with snapshots.hold(chosen.state / "snapshots" / pipeline.name):  # there is one to join with
        marker = check_tables(loader, pipeline)
    source = source_number(chosen.kafka_bootstrap, pipeline.source.topic, loader)
    return Stream(chosen, pipeline, source, marker, stop)


if __name__ == "__main__":
    main()
