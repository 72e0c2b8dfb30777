"""Put the generator's events on a topic by Spark's Kafka sink, at full speed or at a rate.

spark-submit fill_topic.py --topic clean --events 4000000 --keys 2000000 [--malformed 0.01] [--rate 75000]
                           [--appended FILE] [--first 1000000000]

--first is the number of the first event: other numbers make other events of the same distribution. With --appended it
writes where and when a part of the events was appended, by Kafka's clock, as a Parquet file.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import compute, parquet

from generator.events import make_events
from generator.settings import StreamSettings
from generator.values import recipe
from services.settings import settings
from spark_apps.session import create_session, kafka_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyarrow import RecordBatch

SPARK_SCHEMA = "key string, value binary"
STEPS_A_SECOND = 50  # of a paced stream
ONE_IN = 37  # events whose time of append is written down


@dataclass(frozen=True)
class Maker:
    """The function that Spark calls: event numbers in, messages out, each batch when it is due."""

    stream: StreamSettings
    rate: int | None

    def __call__(self, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        """Make messages."""
        plan = recipe(self.stream)
        due = time.monotonic()
        for batch in batches:
            step = self.rate // STEPS_A_SECOND if self.rate else batch.num_rows
            for first in range(0, batch.num_rows, step):
                numbers = batch.column(0).slice(first, step).to_numpy()
                if self.rate:
                    time.sleep(max(0.0, due - time.monotonic()))
                    due = time.monotonic() + len(numbers) / self.rate  # a delay is not made up for in a burst
                sold_at = np.full(len(numbers), time.time_ns() // 1_000_000)
                events = make_events(plan, numbers, sold_at, tag=1)
                keys, values = pa.array(events.products).cast("string"), _values(*events.json_lines())
                yield pa.RecordBatch.from_arrays([keys, values], ["key", "value"])


def _values(text: bytes, ends: np.ndarray) -> pa.Array:
    """Cut the text into lines, without their newlines."""
    bounds = np.concatenate([[0], ends + 1]).astype(np.int32)
    lines = pa.BinaryArray.from_buffers(pa.binary(), len(ends), [None, pa.py_buffer(bounds), pa.py_buffer(text)])
    return compute.binary_slice(lines, 0, -1)


def main() -> None:
    """Fill and end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--topic", required=True)
    parser.add_argument("--events", type=int, required=True)
    parser.add_argument("--keys", type=int, required=True)
    parser.add_argument("--malformed", type=float, default=0.0)
    parser.add_argument("--rate", type=int)
    parser.add_argument("--appended")
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    session = create_session("fill_topic")
    stream = StreamSettings(keys=asked.keys, exponent=1.0, seed=11, malformed=asked.malformed)
    target = {
        "kafka.bootstrap.servers": settings().kafka_bootstrap,
        "kafka.compression.type": "lz4",
        "topic": asked.topic,
    }
    numbers = session.range(asked.first, asked.first + asked.events, 1, 1 if asked.rate else 2)
    numbers.mapInArrow(Maker(stream, asked.rate), SPARK_SCHEMA).write.format("kafka").options(**target).save()
    if asked.appended:
        topic = session.read.format("kafka").options(**kafka_options(settings(), asked.topic)).load()
        some = topic.select("partition", "offset", "timestamp").where(f"offset % {ONE_IN} = 0")
        parquet.write_table(some.toArrow(), asked.appended)
    session.stop()


if __name__ == "__main__":
    main()
