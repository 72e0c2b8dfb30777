"""The long-running application: events from Kafka, enriched, into the warehouse and the enriched topic.

spark-submit enrich_stream.py --pipeline sales
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from typing import TYPE_CHECKING

import pymysql
from kafka.errors import KafkaError

from services.settings import SettingsError, settings
from services.warehouse import login
from spark_apps.control import AlreadyRunningError, Lease
from spark_apps.enrichment import OUTPUT_SCHEMA, Enricher
from spark_apps.master import snapshots
from spark_apps.pipeline import PipelineError, load_pipeline
from spark_apps.session import create_session, kafka_options
from spark_apps.topics import TopicError, source_number

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from services.settings import Settings
    from spark_apps.pipeline import Pipeline

TRIGGER = "1 second"
LOOK_FOR_STOP_SECONDS = 1


def main() -> None:
    """Run until an operator asks to stop; what cannot start is one line and exit code 1."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pipeline", default="sales", help="the name of a file in pipelines/ (default: sales)")
    try:
        run(settings(), load_pipeline(parser.parse_args().pipeline))
    except (SettingsError, PipelineError, TopicError, AlreadyRunningError, snapshots.SnapshotError) as failure:
        sys.exit(f"enrich_stream: {failure}")
    except (pymysql.MySQLError, KafkaError) as failure:
        sys.exit(f"enrich_stream: cannot start: {failure}. See that `make status` says healthy.")


def run(chosen: Settings, pipeline: Pipeline) -> None:
    """Enrich the pipeline's stream, holding the right to do so."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: stop.set())
    loader = login("loader", chosen)
    folder = chosen.state / "snapshots" / pipeline.name
    held = snapshots.hold(folder)
    source = source_number(chosen.kafka_bootstrap, pipeline.source.topic, loader)
    with Lease(loader, pipeline.name) as lease:
        session = create_session(f"enrich_stream {pipeline.name}")

        def write(batch: DataFrame, _batch_id: int) -> None:
            nonlocal held
            newest = snapshots.hold(folder)
            held.release()
            held = newest
            messages = batch.select("partition", "offset", "value").mapInArrow(
                Enricher(source, held.snapshot.path), OUTPUT_SCHEMA
            )
            target = {"kafka.bootstrap.servers": chosen.kafka_bootstrap, "topic": pipeline.enriched.topic}
            messages.write.format("kafka").options(**target).save()

        query = (
            session.readStream.format("kafka")
            .options(**kafka_options(chosen, pipeline.source.topic))
            .load()
            .writeStream.foreachBatch(write)
            .option("checkpointLocation", str(chosen.state / "checkpoints" / pipeline.name / str(source)))
            .trigger(processingTime=TRIGGER)
            .start()
        )
        print(f"enrich_stream: pipeline {pipeline.name!r} runs", flush=True)
        while not query.awaitTermination(LOOK_FOR_STOP_SECONDS):
            asked = stop.is_set() or lease.stop_requested()
            if asked and not query.status["isTriggerActive"]:
                query.stop()
        session.stop()
    print("enrich_stream: stopped as asked, between two batches", flush=True)


if __name__ == "__main__":
    main()
