"""The long-running application: it enriches events from Kafka for the warehouse and the enriched topic.

spark-submit enrich_stream.py --pipeline sales
"""

from __future__ import annotations

import argparse
import sys
from os import EX_TEMPFAIL
from typing import TYPE_CHECKING

import pymysql
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from foundation.connections import login
from foundation.errors import AlreadyRunningError, FreshetError, TransientError
from foundation.settings import settings
from spark_apps.enriching.enricher import Enricher
from spark_apps.enriching.worker_join import check_join
from spark_apps.master import snapshots
from spark_apps.monitoring.batch_counters import BatchCounters
from spark_apps.monitoring.metrics_page import page
from spark_apps.monitoring.metrics_server import serve_metrics
from spark_apps.pipeline.definition import read_pipeline
from spark_apps.running.failures import is_permanent, one_line
from spark_apps.running.lease import Lease
from spark_apps.running.query import Query
from spark_apps.running.retry import Retry
from spark_apps.running.session import create_session
from spark_apps.running.starts import record_metrics_port
from spark_apps.running.stop import Stop

if TYPE_CHECKING:
    from foundation.settings import Settings
    from spark_apps.pipeline.definition import Pipeline
    from spark_apps.running.query import MakeEnricher

PERMANENT = 1  # exit code: a retry cannot help
TRANSIENT = (PySparkException, Py4JJavaError, pymysql.MySQLError, TransientError)


def main(make_enricher: MakeEnricher = Enricher) -> None:
    """Run until a stop is requested. An error is one line, and the exit code says whether a retry can help."""
    parser = argparse.ArgumentParser(description="Enrich a pipeline's stream until it is asked to stop.")
    parser.add_argument("--pipeline", default="sales", help="the name of a file in pipelines/ (default: sales)")
    try:
        run(settings(), read_pipeline(parser.parse_args().pipeline), make_enricher)
    except (FreshetError, *TRANSIENT) as failure:
        print(f"enrich_stream: {one_line(failure)}", file=sys.stderr, flush=True)
        sys.exit(PERMANENT if is_permanent(failure) else EX_TEMPFAIL)
    print("enrich_stream: stopped as asked", flush=True)


def run(config: Settings, pipeline: Pipeline, make_enricher: MakeEnricher = Enricher) -> None:
    """Enrich the pipeline's stream while holding its lease; retry after transient errors."""
    stop = Stop(login("loader", config), pipeline.name)
    stop.obey_sigterm()
    counters = BatchCounters(config, pipeline)
    Query(config, pipeline, stop, counters, make_enricher)  # raises before Spark starts if something is missing
    with snapshots.hold(config.folders.snapshots(pipeline.name)) as snapshot:
        check_join(pipeline, snapshot.path, snapshot.plan)
    with (
        Lease(login("loader", config), pipeline.name) as lease,
        serve_metrics(config, lambda: page(counters)) as port,
    ):
        record_metrics_port(login("loader", config), pipeline.name, port)
        stop.look()
        session = create_session(f"enrich_stream {pipeline.name}")
        retry = Retry()
        with stop.limited(session.sparkContext.cancelAllJobs):
            while not stop.is_asked:
                query = None
                try:
                    query = Query(config, pipeline, stop, counters, make_enricher)
                    query.run(session, lease)
                    retry.query_ended_well()
                except AlreadyRunningError:
                    raise  # another application took the lease: never two at work
                except TRANSIENT as failure:
                    if stop.is_asked:
                        break
                    pause = retry.pause_after(failure, progress=query is not None and query.batches_done > 0)
                    said = one_line(failure).rstrip(".")
                    print(f"enrich_stream: {said}. It retries in {pause:.0f} s.", flush=True)
                    stop.rest(pause, lease.keep)
        session.stop()


if __name__ == "__main__":
    main()
