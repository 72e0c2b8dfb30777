"""Estimate how often the stream asks for each master row, from the topic itself.

spark-submit estimate_frequency.py --pipeline sales
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from services.settings import settings
from services.warehouse import connect, login
from spark_apps.pipeline import PipelineError, load_pipeline
from spark_apps.session import create_session, kafka_options

if TYPE_CHECKING:
    from services.settings import Settings
    from spark_apps.pipeline import Pipeline

STORE = (
    "INSERT INTO product_frequency (product_id, access_frequency) VALUES (%s, %s) "
    "ON DUPLICATE KEY UPDATE access_frequency = VALUES(access_frequency)"
)


def main() -> None:
    """Estimate once and end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pipeline", default="sales", help="the name of a file in pipelines/ (default: sales)")
    try:
        seen = estimate(settings(), load_pipeline(parser.parse_args().pipeline))
    except PipelineError as failure:
        sys.exit(f"estimate_frequency: {failure}")
    print(f"estimate_frequency: {seen} keys seen", flush=True)


def estimate(chosen: Settings, pipeline: Pipeline) -> int:
    """Count the keys of the topic, store each one's share and return their number."""
    session = create_session(f"estimate_frequency {pipeline.name}")
    events = session.read.format("kafka").options(**kafka_options(chosen, pipeline.source.topic)).load()
    key = f.get_json_object(f.col("value").cast("string"), f"$.{pipeline.master.key[0]}").try_cast("bigint")
    counted = events.groupBy(key.alias("key")).count().where("key >= 0").toArrow()
    total = sum(counted["count"].to_pylist())
    rows = [(row["key"], row["count"] / total) for row in counted.to_pylist()]
    with connect(login("loader", chosen)) as connection, connection.cursor() as cursor:
        cursor.executemany(STORE, rows)
    session.stop()
    return len(rows)


if __name__ == "__main__":
    main()
