"""Estimate how often the stream asks for each master row, from a recent interval of the topic.

spark-submit estimate_frequency.py --pipeline sales

The interval is a range of Kafka timestamps. It begins no earlier than the previous one ended, so no event is counted
twice. Spark counts keys exactly and spills what does not fit into memory. Only the most frequent keys go to the driver;
spark_apps/master/frequency.py says how large the error can be.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pymysql
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Observation
from pyspark.sql import functions as f

from foundation.connections import login
from foundation.errors import FreshetError
from foundation.settings import settings
from spark_apps.events.reader import EventReader
from spark_apps.master.frequency import WEIGHT, Estimate, merge, read_estimate, store_estimate
from spark_apps.pipeline.definition import read_pipeline
from spark_apps.running.failures import one_line
from spark_apps.running.session import create_session, kafka_options, message_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from foundation.settings import Settings
    from spark_apps.pipeline.definition import Pipeline

MINUTE = 60_000
COUNTED_AS = {"int64": "BIGINT", "int32": "INT", "uint32": "BIGINT", "string": "STRING", "uuid": "STRING"}


@dataclass(frozen=True)
class Window:
    """Which events an estimate counts, and how many keys it keeps.

    Attributes:
        minutes: how far back the interval goes at most.
        half_life: minutes after which an event counts half.
        keep: how many keys at most.
    """

    minutes: float
    half_life: float
    keep: int


def main() -> None:
    """Make one estimate and print one line about it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pipeline", default="sales", help="the name of a file in pipelines/ (default: sales)")
    parser.add_argument("--minutes", type=_minutes, default=60, help="how far to look back at most (default: 60)")
    parser.add_argument(
        "--half-life", type=_minutes, default=60, help="minutes until an event counts half (default: 60)"
    )
    parser.add_argument("--keep", type=int, default=1_000_000, help="how many keys to keep (default: 1000000)")
    arguments = parser.parse_args()
    window = Window(arguments.minutes, arguments.half_life, arguments.keep)
    try:
        line = estimate(settings(), read_pipeline(arguments.pipeline), window)
    except (FreshetError, pymysql.MySQLError, PySparkException, Py4JJavaError) as failure:
        sys.exit(f"estimate_frequency: {one_line(failure)}")
    print(f"estimate_frequency: {line}", flush=True)


def _minutes(text: str) -> float:
    problem = argparse.ArgumentTypeError(f"must be a number of minutes above 0, got {text!r}")
    try:
        number = float(text)
    except ValueError:
        raise problem from None
    if not 0 < number < math.inf:
        raise problem
    return number


def estimate(config: Settings, pipeline: Pipeline, window: Window) -> str:
    """Count keys, merge the counts with the earlier estimate, store the result; return a line for the log."""
    loader = login("loader", config)
    earlier = read_estimate(loader, pipeline.master)
    until = time.time_ns() // 1_000_000
    since = max(until - round(window.minutes * MINUTE), earlier.until_ms)
    if since >= until:
        return "nothing counted: the last estimate ends in the future. Check the clock."
    counted = count_keys(config, pipeline, since, until, window.keep)
    merged = merge(earlier, counted, window.half_life * MINUTE, window.keep)
    stored = store_estimate(loader, pipeline.master, merged)
    minutes = (until - since) / MINUTE
    return f"{counted.total:,.0f} events of {minutes:.1f} minutes counted, {stored:,} keys have an estimate"


def count_keys(config: Settings, pipeline: Pipeline, since: int, until: int, keep: int) -> Estimate:
    """Count an interval's events that have a key: their total, and how many have each of the most frequent keys."""
    key = pipeline.master.key
    session = create_session(f"estimate_frequency {pipeline.name}")
    interval = {
        "startingTimestamp": str(since),
        "endingTimestamp": str(until),
        "startingOffsetsByTimestampStrategy": "latest",  # for a partition that has no events since then
        "failOnDataLoss": "false",  # an estimate can do without events that the broker removes meanwhile
    }
    events = session.read.format("kafka").options(**kafka_options(config, pipeline.source) | interval).load()
    columns = ", ".join(f"`{name}` {COUNTED_AS[pipeline.source.fields[name].kind]}" for name in key)
    keys = events.select(*message_columns(pipeline.source.origins)).mapInArrow(_keys_of(pipeline), columns).dropna()
    seen = Observation()
    counted = keys.groupBy(*key).agg(f.count("*").cast("double").alias(WEIGHT)).observe(seen, f.sum(WEIGHT).alias("n"))
    heaviest = counted.orderBy(f.desc(WEIGHT), *key).limit(keep).toArrow()
    total = seen.get["n"] or 0.0
    session.stop()
    return Estimate(until, total, heaviest)


def _keys_of(pipeline: Pipeline) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that reads events' keys, for Spark to run in its workers."""
    fields = {name: pipeline.source.fields[name] for name in pipeline.master.key}

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = EventReader(fields, fields)
        for batch in batches:
            beside = {field.origin: batch[field.origin] for field in fields.values() if field.origin}
            yield reader.read(batch["partition"], batch["offset"], batch["value"], beside).events.select(list(fields))

    return read


if __name__ == "__main__":
    main()
