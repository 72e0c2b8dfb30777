"""The Spark session of our applications, and how they read Kafka."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from spark_apps.pipeline.event_field import HEADER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark import SparkContext
    from pyspark.sql import Column

    from foundation.settings import Settings
    from spark_apps.pipeline.definition import Source

RUNTIME = "org.apache.spark.sql.execution.streaming.runtime"
ANSWER_MS = "10000"  # limits a pending broker call when a query stops; Kafka's default is a minute


def create_session(name: str) -> SparkSession:
    """Return a session on the master that spark-submit names."""
    session = (
        SparkSession.builder.appName(name)
        .config("spark.ui.enabled", "false")  # Spark's web UI has no login
        .config("spark.log.level", "WARN")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "65536")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    # This class warns of each batch that takes longer than the trigger's interval: several times a second, for ever.
    log_from("ERROR", session.sparkContext, "ProcessingTimeExecutor")
    return session


def log_from(level: str, context: SparkContext, who: str) -> None:
    """Set the log level of one of the classes by which Spark runs a query; OFF silences it."""
    log4j = context._jvm.org.apache.logging.log4j  # type: ignore[union-attr]  # noqa: SLF001  # no other way
    log4j.core.config.Configurator.setLevel(f"{RUNTIME}.{who}", log4j.Level.toLevel(level))


def _is_named(name: str, header: Column) -> Column:
    return header.key == name


def message_columns(origins: Iterable[str]) -> list[Column]:
    """Return the columns of a message that an EventReader needs, each under its name."""
    made = [f.col(name) for name in ("partition", "offset", "value", "timestamp")]
    for origin in sorted(origins):
        if origin.startswith(HEADER):
            named = f.filter("headers", partial(_is_named, origin.removeprefix(HEADER)))
            made.append(f.get(named, 0).value.alias(origin))
        elif origin != "timestamp":
            made.append(f.col(origin))
    return made


def kafka_options(config: Settings, source: Source) -> dict[str, str]:
    """Return the options with which Spark reads a topic from its beginning, and fails if the broker lost events.

    Messages of aborted transactions are not read.
    """
    return {
        "kafka.bootstrap.servers": config.kafka_bootstrap,
        "kafka.request.timeout.ms": ANSWER_MS,
        "kafka.default.api.timeout.ms": ANSWER_MS,
        "includeHeaders": str(any(origin.startswith(HEADER) for origin in source.origins)).lower(),
        "kafka.isolation.level": "read_committed",
        "subscribe": source.topic,
        "startingOffsets": "earliest",
        "failOnDataLoss": "true",
    }
