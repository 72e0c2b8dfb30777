"""The speed of the generator: into arrays, as JSON into a file, into Kafka beside the bare producer, in two processes.

Run it with `python -m benchmarks.benchmark_generator`. It starts services of its own. Kernels are compiled before the
clock starts; each figure is the median of the rounds, followed by the lowest and the highest.
"""

import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from kafka import KafkaProducer

from benchmarks.stream.own_services import own_services
from generator import Report, Stop, StreamSettings, Target, run_stream
from generator.events import make_events
from generator.kafka_sink import PRODUCER_SETTINGS, KafkaSink, ensure_topic
from generator.pump import pump, warm_up
from generator.stream import BATCH_EVENTS, Share, unpaced_batches
from generator.tally import Tally
from generator.values import recipe

ROUNDS = 5
KEYS = 10_000_000
ARRAY_EVENTS = 10_000_000
JSON_EVENTS = 2_000_000
KAFKA_EVENTS = 120_000
TOPIC, TOPIC_PARTITIONS = "generator-benchmark", 4


def machine() -> str:
    """Return a line about the machine and its load."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = {line.split(":")[1].strip() for line in lines if line.startswith("model name")}
    load = os.getloadavg()[0]
    return f"{', '.join(models)}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f} at start"


def band(figures: list[float], unit: str = "") -> str:
    """Return the median, the lowest and the highest figure as text."""
    number = ",.2f" if max(figures) < 100 else ",.0f"  # noqa: PLR2004 - ratios have decimals
    low, middle, high = min(figures), statistics.median(figures), max(figures)
    return f"{middle:{number}}{unit} (band {low:{number}} to {high:{number}})"


class Rate(NamedTuple):
    """Events per second of wall-clock time and of processor time; other programs slow down the first only."""

    wall: float
    cpu: float


def rate(events: int, work: Callable[[], None]) -> Rate:
    """Measure the rate of one piece of work."""
    began, cpu_began = time.perf_counter(), time.process_time()
    work()
    return Rate(events / (time.perf_counter() - began), events / (time.process_time() - cpu_began))


def into_arrays() -> None:
    """Make the columns of all events, and write them nowhere."""
    plan = recipe(StreamSettings(keys=KEYS, seed=1))
    for first in range(0, ARRAY_EVENTS, BATCH_EVENTS):
        numbers = np.arange(first, first + BATCH_EVENTS)
        make_events(plan, numbers, numbers, tag=0)


def into_file(path: Path) -> None:
    """Write the events as JSON lines."""
    run_stream(StreamSettings(keys=KEYS, events=JSON_EVENTS, seed=1), Target(sink="json", path=path))


def ready_messages() -> list[tuple[bytes, bytes]]:
    """Make the messages that the generator would send."""
    messages = []
    for events in unpaced_batches(StreamSettings(keys=KEYS, events=KAFKA_EVENTS, seed=1), Share(), tag=0):
        text, ends = events.json_lines()
        start = 0
        for product, end in zip(events.products.tolist(), ends.tolist(), strict=True):
            messages.append((b"%d" % product, text[start:end]))
            start = end + 1
    return messages


def bare_producer(bootstrap: str, topic: str, messages: list[tuple[bytes, bytes]]) -> Rate:
    """Measure kafka-python alone, with the generator's producer settings."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, **PRODUCER_SETTINGS)
    producer.partitions_for(topic)

    def send() -> None:
        for key, value in messages:
            producer.send(topic, value, key)
        producer.flush()

    measured = rate(len(messages), send)
    producer.close()
    return measured


def generator_sink(bootstrap: str, topic: str) -> Rate:
    """Measure the generator in this process: it makes and sends events, and looks at every future."""
    settings = StreamSettings(keys=KEYS, events=KAFKA_EVENTS, seed=1)
    tally, stop = Tally(), Stop()
    sink = KafkaSink(bootstrap, topic, tally, stop)
    measured = rate(KAFKA_EVENTS, lambda: pump(settings, sink, tally, stop, Share(), tag=0))
    if tally.acknowledged != KAFKA_EVENTS:
        raise RuntimeError(
            f"acknowledged: must be {KAFKA_EVENTS}, got {tally.acknowledged}; the figure is useless, run it again"
        )
    return measured


def of_processes(settings: StreamSettings, processes: int, **target: str) -> Report:
    """Run the stream in several processes and return their common report."""
    report = run_stream(settings, Target(processes=processes, **target))  # type: ignore[arg-type]
    if not report.complete:
        raise RuntimeError(f"run: must acknowledge every event, got {report}; the figure is useless, run it again")
    return report


def main() -> None:
    """Measure and print every figure."""
    print(machine())
    warm_up(StreamSettings(keys=KEYS))
    into_arrays()
    arrays = [rate(ARRAY_EVENTS, into_arrays).wall for _ in range(ROUNDS)]
    print(f"into arrays, one core: {statistics.median(arrays) / 5e6:.2f} of the target, {band(arrays, ' events/s')}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.json"
        files = [rate(JSON_EVENTS, lambda: into_file(path)).wall for _ in range(ROUNDS)]
        print(
            f"JSON to a file, one core: {statistics.median(files) / 3e5:.2f} of the target, {band(files, ' events/s')}"
        )
    with own_services() as config:
        ensure_topic(config.kafka_bootstrap, TOPIC, TOPIC_PARTITIONS)
        compare_in_kafka(config.kafka_bootstrap, TOPIC)


def compare_in_kafka(bootstrap: str, topic: str) -> None:
    """Compare the generator with the bare producer, then two processes with one, into Kafka and without a sink."""
    messages = ready_messages()
    bare_producer(bootstrap, topic, messages)
    pairs = [(generator_sink(bootstrap, topic), bare_producer(bootstrap, topic, messages)) for _ in range(ROUNDS)]
    ratios = band([ours.wall / bare.wall for ours, bare in pairs])
    print(f"into Kafka, one process: {ratios} of the bare producer (target 0.8)")
    print(f"  by processor time {band([ours.cpu / bare.cpu for ours, bare in pairs])}")
    print(f"  generator {band([ours.wall for ours, _ in pairs], ' events/s')}")
    print(f"  bare      {band([bare.wall for _, bare in pairs], ' events/s')}")
    kafka = StreamSettings(keys=KEYS, events=2 * KAFKA_EVENTS, seed=1)
    arrays = StreamSettings(keys=KEYS, events=4 * ARRAY_EVENTS, seed=1)
    for name, settings, target in (
        (
            "into Kafka on the same cores",
            kafka,
            {"sink": "kafka", "bootstrap": bootstrap, "topic": topic},
        ),
        ("without a sink", arrays, {"sink": "none"}),
    ):
        runs = [(of_processes(settings, 2, **target), of_processes(settings, 1, **target)) for _ in range(ROUNDS)]
        cpu = band([two.cpu_seconds / one.cpu_seconds for two, one in runs])
        print(f"two processes, {name}: {band([one.seconds / two.seconds for two, one in runs])} times one")
        print(f"  two {band([two.acknowledged / two.seconds for two, _ in runs], ' events/s')}")
        print(f"  processor time for the same events {cpu} times that of one")


if __name__ == "__main__":
    main()
