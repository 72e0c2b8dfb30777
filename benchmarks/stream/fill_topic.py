"""Put the generator's events on a topic by Spark's Kafka sink, in batches as large as the generator's own producer's.

spark-submit fill_topic.py --topic clean --events 4000000 --keys 2000000 [--malformed 0.01] [--first 1000000000]

--first is the number of the first event: other numbers make other events of the same distribution.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import compute

from foundation.settings import settings
from generator.events import make_events
from generator.kafka_sink import PRODUCER_SETTINGS
from generator.settings import StreamSettings
from generator.values import recipe
from spark_apps.running.session import create_session

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyarrow import RecordBatch

SPARK_SCHEMA = "key string, value binary"


@dataclass(frozen=True)
class Maker:
    """The function that Spark calls: event numbers in, messages out."""

    stream: StreamSettings

    def __call__(self, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        """Yield the messages of the events that have these numbers."""
        plan = recipe(self.stream)
        for batch in batches:
            sold_at = np.full(batch.num_rows, time.time_ns() // 1_000_000)
            events = make_events(plan, batch.column(0).to_numpy(), sold_at, tag=1)
            keys, values = pa.array(events.products).cast("string"), _values(*events.json_lines())
            yield pa.RecordBatch.from_arrays([keys, values], ["key", "value"])


def _values(text: bytes, ends: np.ndarray) -> pa.Array:
    """Cut the text into lines, without their newlines."""
    bounds = np.concatenate([[0], ends + 1]).astype(np.int32)
    lines = pa.BinaryArray.from_buffers(pa.binary(), len(ends), [None, pa.py_buffer(bounds), pa.py_buffer(text)])
    return compute.binary_slice(lines, 0, -1)


def main() -> None:
    """Fill the topic."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--topic", required=True)
    parser.add_argument("--events", type=int, required=True)
    parser.add_argument("--keys", type=int, required=True)
    parser.add_argument("--malformed", type=float, default=0.0)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    session = create_session("fill_topic")
    stream = StreamSettings(keys=asked.keys, exponent=1.0, seed=11, malformed=asked.malformed)
    target = {
        "kafka.bootstrap.servers": settings().kafka_bootstrap,
        "kafka.compression.type": PRODUCER_SETTINGS["compression_type"],
        "kafka.batch.size": PRODUCER_SETTINGS["batch_size"],
        "kafka.linger.ms": PRODUCER_SETTINGS["linger_ms"],
        "topic": asked.topic,
    }
    numbers = session.range(asked.first, asked.first + asked.events, 1, 2)
    numbers.mapInArrow(Maker(stream), SPARK_SCHEMA).write.format("kafka").options(**target).save()
    session.stop()


if __name__ == "__main__":
    main()
