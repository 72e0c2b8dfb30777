"""Load the classes of Spark that the applications use, so that the JVM can archive them when this program ends.

`make install` runs it once, by spark-submit. It needs no service, and fails if Spark does not run on this machine.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f


def pass_on(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the batches unchanged, through a Python worker."""
    yield from batches


def write(batch: DataFrame, _batch_id: int) -> None:
    """Write a batch through a Python worker, as enrich_stream does."""
    batch.mapInArrow(pass_on, batch.schema).write.format("noop").mode("append").save()


def main() -> None:
    """Run a stream, as enrich_stream does, and a count, as estimate_frequency does."""
    session = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
    stream = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    stream.writeStream.foreachBatch(write).trigger(availableNow=True).start().awaitTermination()
    events = session.range(10).select(f.to_json(f.struct("id")).alias("event"))
    keys = events.select(f.from_json("event", "id BIGINT").alias("event")).select("event.*").dropna()
    keys.groupBy("id").count().orderBy(f.desc("count")).limit(5).toArrow()
    session.stop()


if __name__ == "__main__":
    main()
