"""Touch what our Spark applications use of Spark, so that the JVM that runs this can archive the classes at its end.

Run once by install.py, by spark-submit. It needs no service, and shows at once whether Spark runs on this machine.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f


def passed_on(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give a worker what it can do without us."""
    yield from batches


def write(batch: DataFrame, _batch_id: int) -> None:
    """Do what a batch of a stream does."""
    batch.mapInArrow(passed_on, batch.schema).write.format("noop").mode("append").save()


def main() -> None:
    """Run a stream and a count."""
    session = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
    stream = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    stream.writeStream.foreachBatch(write).trigger(availableNow=True).start().awaitTermination()
    events = session.range(10).select(f.to_json(f.struct("id")).alias("event"))
    keys = events.select(f.from_json("event", "id BIGINT").alias("event")).select("event.*").dropna()
    keys.groupBy("id").count().orderBy(f.desc("count")).limit(5).toArrow()
    session.stop()


if __name__ == "__main__":
    main()
