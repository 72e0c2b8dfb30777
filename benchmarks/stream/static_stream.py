"""What one would write without Freshet: Spark's stream-static join and its JDBC sink.

The master table is cached in memory and sent to every worker as a hash table; the driver inserts in bulk. It is written
as Spark's guides show it, or, with --tuned, with larger polls and larger inserts. It reads the topic to
its end and prints one line of JSON a batch: rows, when it began, how many milliseconds it took.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from foundation.connections import login
from foundation.settings import settings
from spark_apps.pipeline.definition import POSITION, read_pipeline
from spark_apps.running.query import POLL_RECORDS
from spark_apps.running.session import create_session, kafka_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCHEMA = "event_id string, product_id bigint, quantity int, store_id int, sold_at timestamp"


def main() -> None:
    """Read the topic to its end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pipeline", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--tuned", action="store_true")
    asked = parser.parse_args()
    config, pipeline, loader = settings(), read_pipeline(asked.pipeline), login("loader")
    session = create_session("static_stream")
    connection = {
        "url": f"jdbc:mysql://{loader.host}:{loader.port}/{loader.database}?permitMysqlScheme&sslMode=disable&uuidAsString",
        "driver": "org.mariadb.jdbc.Driver",
        "user": loader.user,
        "password": loader.password,
    }
    polls, inserts = ({"kafka.max.poll.records": POLL_RECORDS}, {"batchsize": 10_000}) if asked.tuned else ({}, {})
    products = session.read.format("jdbc").options(**connection, dbtable=pipeline.master.table).load()
    numbers = {name for name, kind in products.dtypes if kind.startswith("decimal")}  # BIGINT UNSIGNED
    wanted = (*pipeline.master.key, *pipeline.master.columns)
    master = products.select(*(f.col(name).cast("bigint") if name in numbers else f.col(name) for name in wanted))
    master.cache().count()
    events = (
        session.readStream.format("kafka")
        .options(**kafka_options(config, pipeline.source), maxOffsetsPerTrigger=asked.batch)
        .options(**polls)
        .load()
        .select("partition", "offset", f.from_json(f.col("value").cast("string"), SCHEMA).alias("event"))
        .select(f.col("partition").alias("kafka_partition"), f.col("offset").alias("kafka_offset"), "event.*")
    )
    position = [f.lit(1).alias("source"), *map(f.col, POSITION[1:])]
    facts = [*position, *map(f.col, pipeline.enriched.columns)]
    enriched = events.join(f.broadcast(master), pipeline.master.key).select(*facts)

    def write(batch: DataFrame, _batch_id: int) -> None:
        sink = batch.write.format("jdbc").options(**connection, **inserts, dbtable=f"{pipeline.name}_enriched")
        sink.mode("append").save()

    query = (
        enriched.writeStream.foreachBatch(write)
        .option("checkpointLocation", str(config.folders.checkpoints(pipeline.name)))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    for batch in query.recentProgress:
        took = batch.durationMs["triggerExecution"]
        print(json.dumps({"rows": batch.numInputRows, "began": batch.timestamp, "milliseconds": took}), flush=True)


if __name__ == "__main__":
    main()
