"""More events arrive than a slow master data store has time for, on the real broker, Spark and warehouse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_apps.enriching.task_join import MOST_HELD_BYTES
from spark_apps.running.checkpoint import has_open_batch
from tests.spark_apps import slow_stream
from tests.spark_apps.application import KINDS, Application, application_on, newest, sale
from tests.spark_apps.slow_stream import PAGE_SECONDS, SLOW_WHILE
from tests.topics import read_enriched

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foundation.settings import Settings

pytestmark = pytest.mark.integration
BEFORE, WAVES, WAVE = 50, 2, 20_000
PRODUCTS_SOLD, PAGE_ROWS = 300, 10
MEGABYTE = 2**20
AGAIN = " It retries in "
MOST_PAGES = 4  # each of two tasks reads the page that it has begun, and one more for replayed events


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """Return the file that makes the master data store slow while it exists."""
    return tmp_path / "slow"


@pytest.fixture
def application(catalogue: Settings, slow: Path, tmp_path: Path) -> Iterator[Application]:
    """Yield the application with a short time limit for a batch, over many pages of master data."""
    with application_on(catalogue, "flood", tmp_path / "flood", page_rows=PAGE_ROWS) as made:
        made.program = Path(slow_stream.__file__)
        made.variables = {SLOW_WHILE: str(slow)}
        yield made


def test_a_flood_over_a_slow_store_is_shed_and_lands_later(application: Application, slow: Path) -> None:
    """In a flood, memory and latency stay bounded because events are shed; the shed events land later, exactly once."""
    for part in range(application.pipeline.source.partitions):  # all workers start and have work before the flood
        application.send(*map(sale, range(BEFORE)), partition=part)
    before = sum(application.ends().values())
    application.start()
    application.wait(lambda: uncounted(application, before), "the counters of what came before the flood")
    ((warm, quiet),) = counters(application, "MAX(id), MAX(worker_bytes)")
    slow.touch()
    for _ in range(WAVES):
        application.send_sales(WAVE)
        application.wait(lambda: behind(application), "the wave to be read")
    every = " UNION ALL ".join(
        f"SELECT '{kind}' AS kind, kafka_partition, kafka_offset FROM flood_{kind}" for kind in (*KINDS, "shed")
    )
    ((shed, rows, positions),) = application.rows(  # in one statement, because tasks replay events all the time
        f"SELECT SUM(kind = 'shed'), COUNT(*), COUNT(DISTINCT kafka_partition, kafka_offset) FROM ({every}) AS every"
    )
    assert int(str(shed)) > WAVES * WAVE // 2
    assert rows == positions == sum(application.ends().values())
    assert list((application.running.folders.shed("flood")).rglob("*-*"))

    application.wait(lambda: uncounted(application, before + WAVES * WAVE), "the counters of the flood")
    of_flood = f"id > {warm} AND batch IS NOT NULL"
    ((latest, pages, most),) = counters(
        application, "MAX(latency_most_seconds), MAX(pages_read), MAX(worker_bytes)", of_flood
    )
    reading_all = PRODUCTS_SOLD // PAGE_ROWS * PAGE_SECONDS  # the time of a batch that sheds nothing
    assert latest < reading_all
    assert pages <= MOST_PAGES
    assert most - quiet < application.pipeline.memory_mb * MEGABYTE + 2 * MOST_HELD_BYTES

    _, repeats = read_enriched(application.running.kafka_bootstrap, "flood.enriched", application.source())
    assert repeats == 0
    ((last,),) = counters(application, "MAX(id)")
    application.send_sales(1)
    topic = application.pipeline.source.topic
    application.wait(lambda: None if has_open_batch(application.checkpoint, topic) else "none", "a batch to begin")
    application.kill_processes("pyspark.daemon")
    application.wait(lambda: None if AGAIN in application.printed() else "not yet", "it to say so")
    not_done = newest(application.checkpoint / "offsets").name
    slow.unlink()
    application.wait_until_caught_up()
    assert application.rows("SELECT 1 FROM flood_shed") == []
    application.wait(
        lambda: None if counters(application, "SUM(replayed)", f"id > {last}") > [(0,)] else "not yet",
        "the counters of what was taken back",
    )
    # The batch that runs again replays nothing, though it has time: it may have shed some of these events itself.
    assert counters(application, "replayed", f"id > {last} AND batch = {not_done}") == [(0,)]
    products = {row[0]: row[1:] for row in application.rows("SELECT product_id, product_key, price_cents FROM product")}
    expected = {}
    for position, value in application.topic().items():
        event = json.loads(value)
        expected[position] = (event["event_id"], event["quantity"], *products[event["product_id"]])
    found = application.rows(
        "SELECT kafka_partition, kafka_offset, event_id, quantity, product_key, price_cents FROM flood_enriched"
    )
    assert len(found) == len(expected)
    assert {(row[0], row[1]): row[2:] for row in found} == expected
    assert application.terminate() == 0  # so that every message is sent
    messages, _ = read_enriched(application.running.kafka_bootstrap, "flood.enriched", application.source())
    assert messages.keys() == expected.keys()
    assert application.printed().count(AGAIN) == 1  # no other task has failed


def behind(application: Application) -> str | None:
    """Return how many of the topic's events were read, or None when all were."""
    ((read,),) = application.rows("SELECT SUM(next_offset - first_offset) FROM progress WHERE pipeline = 'flood'")
    sent = sum(application.ends().values())
    return None if read == sent else f"{read} of {sent} events were read"


def uncounted(application: Application, events: int) -> str | None:
    """Return how many events the counters of batches include, or None when they include all."""
    ((told,),) = counters(application, "COALESCE(SUM(events), 0)")
    return None if told == events else f"{told} of {events} events are counted"


def counters(application: Application, what: str, where: str = "TRUE") -> list[tuple[float, ...]]:
    """Query the counters that the application wrote for its batches."""
    found = application.rows(f"SELECT {what} FROM batch_counters WHERE pipeline = 'flood' AND {where}")
    return [tuple(float(str(value or 0)) for value in row) for row in found]
