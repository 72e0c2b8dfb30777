"""The estimate for a real topic equals exact counts by Kafka's timestamps, with each event counted once."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from kafka import KafkaProducer

from foundation import spark_launch
from foundation.connections import connect, login
from foundation.settings import ROOT
from spark_apps.master.frequency import read_estimate
from spark_apps.master.tables import prepare
from spark_apps.pipeline.definition import read_pipeline
from spark_apps.pipeline.topics import create_topics

if TYPE_CHECKING:
    from foundation.settings import Settings
    from spark_apps.pipeline.definition import Master

pytestmark = pytest.mark.integration
PIPELINES = ROOT / "tests" / "pipelines"
MINUTES = 30


def send(bootstrap: str, counts: Counter[object], minutes_ago: float) -> None:
    """Send this many events of each key, with a timestamp of some minutes ago."""
    moment = round((time.time() - minutes_ago * 60) * 1000)
    with closing(KafkaProducer(bootstrap_servers=bootstrap)) as producer:
        for key in counts.elements():
            value = key if isinstance(key, bytes) else json.dumps({"product_id": key}).encode()
            producer.send("estimated", value, timestamp_ms=moment)
        producer.flush()


def estimate(running: Settings, *options: str) -> str:
    """Run the program as Airflow does, and return its last line."""
    program = ROOT / "spark_apps" / "estimate_frequency.py"
    submit = spark_launch.submit(program, "--pipeline", "estimated", *options, master="local[2]", jars=running.jars)
    environment = {**os.environ, **spark_launch.environment(), "FRESHET_PIPELINES": str(PIPELINES)}
    done = subprocess.run(submit, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def master(catalogue: Settings) -> Master:
    """Prepare this test's own pipeline; its master table is the product table."""
    pipeline = read_pipeline("estimated", PIPELINES)
    create_topics(catalogue.kafka_bootstrap, pipeline)
    prepare(login("owner", catalogue), pipeline.master)
    with connect(login("owner", catalogue)) as connection, connection.cursor() as cursor:
        cursor.execute("DELETE FROM product_frequency")
        cursor.execute("DELETE FROM master_estimate")
    return pipeline.master


def frequencies(running: Settings) -> dict[int, float]:
    """Return the stored estimate by key."""
    with connect(login("reader", running)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT product_id, access_frequency FROM product_frequency")
        return dict(cursor.fetchall())


def test_shares_are_those_of_exact_counts_and_fade_by_half_in_the_half_life(master: Master, migrated: Settings) -> None:
    """Shares equal the exact decayed counts of readable events with a key; absent keys count in the total only."""
    absent = 10**9
    first: Counter[object] = Counter({7: 30, 5: 20, 11: 10, absent: 40})
    nonsense: Counter[object] = Counter({b"hello": 5, b"": 1, None: 3, "seven": 2, 7.5: 2, b"[1]": 1})
    send(migrated.kafka_bootstrap, Counter({9: 50}), MINUTES + 5)
    send(migrated.kafka_bootstrap, first + nonsense, 1)
    line = estimate(migrated, "--minutes", str(MINUTES))
    assert line == "estimate_frequency: 100 events of 30.0 minutes counted, 3 keys have an estimate"
    assert frequencies(migrated) == pytest.approx({7: 0.3, 5: 0.2, 11: 0.1})

    before = read_estimate(login("loader", migrated), master)
    send(migrated.kafka_bootstrap, Counter({5: 100}), 0)
    line = estimate(migrated, "--minutes", str(MINUTES), "--half-life", "0.5", "--keep", "2")
    assert line.startswith("estimate_frequency: 100 events of ")
    after = read_estimate(login("loader", migrated), master)
    left = 0.5 ** ((after.until_ms - before.until_ms) / 30_000)
    total = 100 * left + 100
    assert frequencies(migrated) == pytest.approx({5: (20 * left + 100) / total, 7: 30 * left / total}, abs=1e-9)
