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
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
import pymysql
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from foundation.connections import login
from foundation.errors import FreshetError, GaveUpError, PassingError
from foundation.settings import settings
from spark_apps.enriching.worker_join import check_join
from spark_apps.master import snapshots
from spark_apps.pipeline.definition import load_pipeline
from spark_apps.running.checkpoint import has_open_batch
from spark_apps.running.failures import lasts, reason
from spark_apps.running.lease import Lease
from spark_apps.running.query import prepare
from spark_apps.running.session import create_session
from spark_apps.watching.batch_counters import BatchCounters
from spark_apps.watching.metrics_page import page
from spark_apps.watching.metrics_server import serve_metrics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from foundation.settings import Settings
    from spark_apps.pipeline.definition import Pipeline
    from spark_apps.running.query import Stream

ASKED_BY = "FRESHET_ASKED_BY"  # the process on whose behalf this runs; without it, nobody waits for the end
GOES_ON = "FRESHET_GOES_ON"  # not empty: this start follows one that failed, and a request to stop holds for both
LOOK_SECONDS = 1
LONGEST_STOP_SECONDS = 20.0
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 30.0
MOST_TRIES = 4  # of what fails for a reason that time does not cure


MAY_PASS = (PySparkException, Py4JJavaError, pymysql.MySQLError, PassingError)


def main() -> None:
    """Run until an operator asks to stop; what keeps it from that is one line and exit code 1."""
    parser = argparse.ArgumentParser(description="Enrich a pipeline's stream until it is asked to stop.")
    parser.add_argument("--pipeline", default="sales", help="the name of a file in pipelines/ (default: sales)")
    try:
        run(settings(), load_pipeline(parser.parse_args().pipeline))
    except (FreshetError, pymysql.MySQLError) as failure:
        sys.exit(f"enrich_stream: {reason(failure)}")
    print("enrich_stream: stopped as asked", flush=True)


def run(chosen: Settings, pipeline: Pipeline) -> None:
    """Enrich the pipeline's stream, holding the right to do so; start it again after what may pass."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: stop.set())
    stream = prepare(chosen, pipeline, stop)  # what cannot work at all is said before Spark starts
    with snapshots.hold(chosen.folders.snapshots(pipeline.name)) as snapshot:
        check_join(pipeline, snapshot.path)
    counters = BatchCounters(chosen, pipeline)
    goes_on = bool(os.environ.get(GOES_ON))
    with (
        Lease(login("loader", chosen), pipeline.name, goes_on=goes_on) as lease,
        serve_metrics(chosen, lambda: page(counters)),
    ):
        look(lease, stop)
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
                pause = FIRST_PAUSE_SECONDS  # but not the tries: what failed may have been left out (Stream.start)
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
                        f"{said}",
                        f"It failed so {tries} times: this does not pass by itself. Correct it and start "
                        "again; nothing is lost, it goes on where it was.",
                    ) from failure
                print(f"enrich_stream: {said}. It goes on in {pause:.0f} s.", flush=True)
                rest(pause, lease, stop)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        ended.set()
        counters.look(stream.source.number)  # the last batch's row
        if not is_orphan():  # whose task Airflow starts again: a request is for that start, too
            with suppress(pymysql.Error):
                lease.forget_request()
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
            if waits and counters.shed.segments and not has_open_batch(stream.checkpoint, stream.source.topic):
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


if __name__ == "__main__":
    main()
