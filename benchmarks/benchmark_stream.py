"""The whole way from Kafka to the warehouse, compared with other programs, on real services of its own.

Run by `python -m benchmarks.benchmark_stream`; `--events`, `--rounds` and `--products` make it shorter. Products are
rows of 120 bytes in MariaDB, the stream is the generator's, Zipfian with exponent 1, JSON on an lz4 topic of four
partitions. The products' order is estimated from other events than those that are read. The joins of both workers
together have a tenth of the products' size as memory. Each round runs all contenders in turn; each starts with empty
tables and reads its topic from the beginning. A rate counts the events that become visible in the warehouse after the
first quarter, which warms up and compiles.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import statistics
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.stream.measuring import Look, Sampled, looks, memory_of, processor_seconds
from benchmarks.stream.own_services import own_services
from benchmarks.stream.programs import JDBC_JARS, Program, fetch_jdbc_driver, running
from benchmarks.stream.replay import replay
from benchmarks.stream.setting import (
    DESCRIBED,
    DESCRIBED_FACTS,
    ROW_BYTES,
    fill_catalogue,
    fill_topic,
    forget,
    publish_in_order,
    write_pipeline,
)  # fmt: skip
from foundation.connections import connect, login
from foundation.settings import ROOT
from spark_apps.monitoring.counters import PHASES
from spark_apps.pipeline.definition import LEAST_MEMORY_MB
from spark_apps.running.query import MOST_EVENTS_A_BATCH

if TYPE_CHECKING:
    from pathlib import Path

    from foundation.settings import Settings
    from spark_apps.pipeline.definition import Pipeline

OURS = ROOT / "spark_apps" / "enrich_stream.py"
OTHERS = ROOT / "benchmarks" / "stream"
WORKERS = 2
WARM_UP = 0.25  # of the events
LEAST_EVENTS = 2 * MOST_EVENTS_A_BATCH
EARLIER = 10**9  # the first event's number in the topic from which frequencies are estimated
WARMING_EVENTS = 1_000_000  # before the latency is measured
READY = "ready"  # a topic of events that are to be sent while latency is measured
SENT_SECONDS = 60
MEASURED_SECONDS = 30, 57  # from and to, within those: programs have warmed up, and more events come


class Contender(NamedTuple):
    """What is measured: a program that reads a pipeline's topic to its end."""

    script: Path
    pipeline: Pipeline


class Run(NamedTuple):
    """What was measured in one run of the application."""

    rate: float
    memory: Sampled
    processors: dict[str, float]  # seconds for a million events


def measure_application(config: Settings, contender: Contender, events: int) -> Run:
    """Run the application until all events of its topic have landed."""
    forget(config, contender.pipeline)
    with (
        running(config, contender.script, "--pipeline", contender.pipeline.name) as program,
        memory_of(program) as memory,
    ):
        coming = looks(config, contender.pipeline.name, program)
        began = next(look for look in coming if look.events >= WARM_UP * events)
        before = processor_seconds(config, program)
        ended = next(look for look in coming if look.events >= events)
        after = processor_seconds(config, program)
    counted = ended.events - began.events
    spent = {name: (after[name] - before[name]) / counted * 1e6 for name in after}
    return Run(counted / (ended.moment - began.moment), memory, spent)


def measure_static(config: Settings, contender: Contender, events: int, *options: str) -> float:
    """Run the stream-static join to the end of its topic; the program itself prints its batches' times."""
    forget(config, contender.pipeline)
    arguments = ["--pipeline", contender.pipeline.name, "--batch", MOST_EVENTS_A_BATCH, *options]
    written = Program(config, contender.script, *arguments, jars=JDBC_JARS, memory="4g").wait()  # holds all products
    batches = [json.loads(line) for line in written.splitlines() if line.startswith('{"rows"')]
    ends = [datetime.fromisoformat(b["began"]).timestamp() + b["milliseconds"] / 1000 for b in batches]
    landed = np.cumsum([batch["rows"] for batch in batches])
    first = int(np.searchsorted(landed, WARM_UP * events))
    return float((landed[-1] - landed[first]) / (ends[-1] - ends[first]))


def measure_latency(config: Settings, pipeline: Pipeline, keys: int, rate: int) -> tuple[float, np.ndarray]:
    """Return events a second, and the seconds from each event's append, by Kafka's clock, until its row was visible.

    The application first lands the warming events; that time is no latency. What comes before `MEASURED_SECONDS` begin
    does not count either. The sender has its events ready.
    """
    forget(config, pipeline)
    topic = pipeline.source.topic
    size = ["--events", rate * SENT_SECONDS, "--keys", keys, "--first", 2 * EARLIER]
    fill_topic(config, READY, *size, stamped="CreateTime")  # `replay` needs this kind of timestamps
    fill_topic(config, topic, "--events", WARMING_EVENTS, "--keys", keys, "--first", EARLIER)
    seen: list[Look] = []
    with running(config, OURS, "--pipeline", pipeline.name) as program, ThreadPoolExecutor(1) as aside:
        coming = looks(config, pipeline.name, program)
        next(look for look in coming if look.events >= WARMING_EVENTS)
        sending = aside.submit(replay, config, READY, topic, rate)
        for look in coming:
            seen.append(look)
            if sending.done() and look.events >= WARMING_EVENTS + sum(batch.events for batch in sending.result()):
                break
    first, last = (sending.result()[0].moment + seconds for seconds in MEASURED_SECONDS)
    batches = [batch for batch in sending.result() if first <= batch.moment < last]
    late = []
    for part in {batch.partition for batch in batches}:
        visible = [look.offsets.get(part, 0) for look in seen]
        mine = [batch for batch in batches if batch.partition == part]
        first_seen = np.searchsorted(visible, [batch.following for batch in mine])
        waited = np.array([seen[place].moment for place in first_seen]) - [batch.moment for batch in mine]
        late.append(np.repeat(waited, [batch.events for batch in mine]))
    latencies = np.concatenate(late)
    return len(latencies) / (last - first), latencies


def phases_of(config: Settings, pipeline: Pipeline) -> dict[str, float]:
    """Return each phase's seconds for an event, by the application's own counters of all its batches."""
    sums = ", ".join(f"SUM({phase}_seconds) / SUM(events)" for phase in PHASES)
    with connect(login("reader", config)) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {sums} FROM batch_counters WHERE pipeline = %s", (pipeline.name,))  # our names
        (seconds,) = cursor.fetchall()
    return dict(sorted(zip(PHASES, map(float, seconds), strict=True), key=lambda item: -item[1]))


def median_and_band(values: list[float], unit: str = "") -> str:
    """Return the median, the lowest and the highest value as text."""
    shown = "{:.2f}" if max(values) < 100 else "{:,.0f}"  # noqa: PLR2004  # significant digits
    middle, low, high = (shown.format(value) for value in (statistics.median(values), min(values), max(values)))
    return f"{middle}{unit} ({low} to {high})"


def timed(what: str, work: object) -> None:
    """Do a part of the preparation, and print how long it took."""
    started = time.monotonic()
    work()  # type: ignore[operator]
    print(f"  {what}: {time.monotonic() - started:.1f} s", flush=True)


def main() -> None:
    """Prepare, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--events", type=int, default=4_000_000, help="of each run (default: 4000000)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each contender runs (default: 3)")
    parser.add_argument("--products", type=int, default=2_000_000, help="rows of master data (default: 2000000)")
    asked = parser.parse_args()
    if asked.events < LEAST_EVENTS:
        parser.error(f"--events must be {LEAST_EVENTS} or more (two batches: the first warms up), got {asked.events}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # services end with this program, however it is ended
    memory_mb = max(asked.products * ROW_BYTES // 10 // WORKERS // 2**20, LEAST_MEMORY_MB)
    fetch_jdbc_driver()
    with own_services() as config:
        print(f"{asked.products:,} products, {asked.events:,} events, {memory_mb} MB for the join of each worker")
        timed("catalogue into MariaDB", lambda: fill_catalogue(config, asked.products))
        pipelines = {
            name: write_pipeline(config, name, topic, memory_mb, *carried)
            for name, topic, *carried in (
                ("earlier", "earlier"), ("ours", "clean"), ("passed", "clean"), ("static", "clean"),
                ("spoilt", "spoilt"), ("paced", "paced"),
                ("described", "clean", DESCRIBED, DESCRIBED_FACTS),
            )
        }  # fmt: skip
        size = ["--events", asked.events, "--keys", asked.products]
        timed("topic to estimate from", lambda: fill_topic(config, "earlier", *size, "--first", EARLIER))
        timed("clean topic", lambda: fill_topic(config, "clean", *size))
        timed("topic with 1% bad events", lambda: fill_topic(config, "spoilt", *size, "--malformed", 0.01))
        timed("estimate, order, publish", lambda: publish_in_order(config, *pipelines.values()))
        report(config, pipelines, asked.events, asked.rounds, asked.products)


def report(config: Settings, pipelines: dict[str, Pipeline], events: int, rounds: int, products: int) -> None:
    """Measure and print, ratios first."""
    scripts = {"ours": OURS, "spoilt": OURS, "described": OURS, "passed": OTHERS / "passing_stream.py"}
    statics = {"static described": ["described"], "static": ["static"], "static tuned": ["static", "--tuned"]}
    runs: defaultdict[str, list[Run]] = defaultdict(list)
    others: defaultdict[str, list[float]] = defaultdict(list)
    for turn in range(rounds):
        for name in [*scripts, *statics][:: -1 if turn % 2 else 1]:  # whoever was first is last in the next round
            if name in scripts:
                runs[name].append(measure_application(config, Contender(scripts[name], pipelines[name]), events))
                rate = runs[name][-1].rate
            else:
                pipeline, *options = statics[name]
                contender = Contender(OTHERS / "static_stream.py", pipelines[pipeline])
                rate = measure_static(config, contender, events, *options)
                others[name].append(rate)
            print(f"  {name}: {rate:,.0f}/s", flush=True)
    rates = {name: [run.rate for run in measured] for name, measured in runs.items()} | others
    names = {
        "ours": "Kafka to MariaDB (goal: 150,000 or more)",
        "described": "with name and vendor in each row, which otherwise the view shows",
        "passed": "passed through without a join",
        "static described": "Spark's stream-static join and JDBC sink, with name and vendor in each row",
        "static": "the same without name and vendor",
        "static tuned": "the same without name and vendor, with larger polls and inserts",
        "spoilt": "with 1% bad events",
    }
    print("\n| ratio | median (noise) | goal |\n| --- | --- | --- |")
    for mine, its, what, goal in (
        ("described", "static described", "ours / stream-static join and JDBC, name and vendor", "3 or more"),
        ("ours", "static", "ours / the same without name and vendor", ""),
        ("ours", "static tuned", "ours / the same with larger polls and inserts", ""),
        ("ours", "passed", "ours / passed through without a join", "0.9 or more"),
        ("spoilt", "ours", "with 1% bad events / without", "0.8 or more"),
    ):
        ratios = [a / b for a, b in zip(rates[mine], rates[its], strict=True)]
        print(f"| {what} | {median_and_band(ratios)} | {goal} |")
    print("\n| events a second | median (noise) |\n| --- | --- |")
    for name, shown in names.items():
        print(f"| {shown} | {median_and_band(rates[name])} |")
    # The rate is half of what the machine does in this minute: in another minute it can do twice as much.
    now = measure_application(config, Contender(OURS, pipelines["ours"]), events).rate
    came, late = measure_latency(config, pipelines["paced"], products, int(now) // 2)
    p50, p99 = np.percentile(late, [50, 99])
    print(
        f"\nappend to visible row at {came:,.0f}/s, half of {now:,.0f}/s, over {len(late):,} events: p50 {p50:.2f} s "
        f"(goal: under 1), p99 {p99:.2f} s (goal: under 3), worst {late.max():.2f} s"
    )
    ours, passed = (
        max((run.memory for run in runs[name]), key=lambda used: used.anonymous) for name in ("ours", "passed")
    )
    print(
        f"a worker's own memory: {ours.anonymous / 2**20:.0f} MB with the join, whose budget is "
        f"{pipelines['ours'].memory_mb} MB, {passed.anonymous / 2**20:.0f} MB without; with mapped files (PSS) "
        f"{ours.proportional / 2**20:.0f} MB and {passed.proportional / 2**20:.0f} MB"
    )
    print("\n| processor seconds for a million events | ours | without a join |\n| --- | --- | --- |")
    for part in runs["ours"][0].processors:
        cells = (median_and_band([run.processors[part] for run in runs[name]]) for name in ("ours", "passed"))
        print(f"| {part} | {' | '.join(cells)} |")
    phases = phases_of(config, pipelines["ours"])
    shares = ", ".join(f"{phase} {spent / sum(phases.values()):.0%}" for phase, spent in phases.items())
    print(
        f"\na task's time by phase: {shares}; the join takes {phases['join'] * 1e6:.2f} us an event (goal: 0.3 or less)"
    )
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
