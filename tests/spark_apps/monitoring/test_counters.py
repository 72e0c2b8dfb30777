"""The counters in the table and on the page for Prometheus match what happened."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import httpx
import pyarrow as pa
import pytest
import yaml

from foundation.connections import connect, login
from foundation.settings import ROOT
from spark_apps.enriching.shedding import Waiting
from spark_apps.events.reader import EventReader
from spark_apps.monitoring.batch_counters import ApplicationFacts, BatchFacts, MasterBacklog, ShedBacklog, TopicBacklog
from spark_apps.monitoring.counters import columns, declared
from spark_apps.monitoring.lag import Lag
from spark_apps.monitoring.metrics_server import PATH, USER
from spark_apps.monitoring.task_counts import TaskCounts, kind_of
from spark_apps.pipeline.event_field import EventField
from spark_apps.pipeline.topics import incarnation_of
from tests.spark_apps.application import SECONDS, Application, application_on, sale
from tests.spark_apps.shedding_stream import Stream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foundation.settings import Settings

KNOWN = 600
OTHER_SOURCE = 60_000  # no topic has this number
BAD = [
    b"garbage",
    None,
    b"",
    b"[]",
    b"\xff\xfe",
    b'{"a": 1, "a": 2}',
    b"{}",
    b"{",
    sale(0).replace(b'"quantity": 1', b'"quantity": -1'),
]
BAD_KINDS = {
    "not JSON": 2,
    "no value": 1,
    "an empty value": 1,
    "not a JSON object": 1,
    "not UTF-8": 1,
    "event_id: missing": 2,
    "quantity: must be a whole number of 0 to 4294967295": 1,
}


def test_counts_of_tasks_add_up() -> None:
    """The counts of tasks are added by number and kind; of memory and of the longest wait the maximum is kept."""
    one = TaskCounts(3, rejected=Counter(a=1), task_seconds=Counter({"read": 1}), latency_most=2.0, worker_bytes=7)
    one += TaskCounts(
        4, rejected=Counter(a=1, b=2), task_seconds=Counter({"load": 2}), latency_most=1.0, worker_bytes=9
    )
    assert one == TaskCounts(
        7, rejected=Counter(a=2, b=2), task_seconds=Counter({"read": 1, "load": 2}), latency_most=2.0, worker_bytes=9
    )


def test_kinds_of_reasons_are_few_whatever_events_say() -> None:
    """Labels of rejected events contain neither values nor names of an event, so producers cannot add labels."""
    fields = {"quantity": EventField(type="uint32")}
    hostile = [json.dumps({"quantity": f"x{i}"}).encode() for i in range(50)]
    hostile += [f'{{"name{i}": 1, "name{i}": []}}'.encode() for i in range(50)]
    hostile += [b'{"quantity": ' + b"[" * i for i in range(50)]
    reader = EventReader(fields, ())
    count = len(hostile)
    read = reader.read(pa.nulls(count, pa.int32()).fill_null(0), pa.array(range(count)), pa.array(hostile))
    assert len(read.rejected) == count
    assert len({reason for _, reason in read.rejected}) > 100
    assert {kind_of(reason, fields) for _, reason in read.rejected} == {
        "quantity: must be a whole number of 0 to 4294967295",
        "quantity: missing",
        "not JSON",
    }


IDENTITY = {"id", "pipeline", "source", "batch", "finished_at"}  # of a batch; all other columns are counters
PAGE_ONLY = ApplicationFacts
OF_THE_TABLE = (TaskCounts, BatchFacts, TopicBacklog, ShedBacklog, MasterBacklog)


def columns_of_counters() -> set[str]:
    """Return the columns that the declarations of counters define."""
    return {name for kind in OF_THE_TABLE for name in columns(kind())}


@pytest.mark.integration
def test_the_table_has_a_column_for_each_counter(migrated: Settings) -> None:
    """The table batch_counters has one column for each counter, and the columns that identify the batch."""
    with connect(login("reader", migrated)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT column_name FROM information_schema.columns WHERE table_name = 'batch_counters'")
        assert {name for (name,) in cursor.fetchall()} == IDENTITY | columns_of_counters()


def test_every_counter_is_explained() -> None:
    """docs/counters.md lists exactly the columns of the table and the metrics that exist."""
    text = (ROOT / "docs" / "counters.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`([a-z0-9_]+)`", row.split("|")[1])} == (
        IDENTITY | columns_of_counters()
    )
    metrics = {each.metric for kind in (*OF_THE_TABLE, PAGE_ONLY) for each in declared(kind)}
    assert set(re.findall(r"`(freshet_\w+)`", text)) == metrics


@pytest.mark.parametrize("file", ["alerts.yml", "grafana.json"])
def test_every_metric_that_is_watched_elsewhere_exists(file: str) -> None:
    """Every metric that the dashboard or an alarm names is exported, so renaming a counter requires a change there."""
    text = (ROOT / "docs" / "monitoring" / file).read_text()
    assert yaml.safe_load(text)
    metrics = {each.metric for kind in (*OF_THE_TABLE, PAGE_ONLY) for each in declared(kind)}
    named = {name.removesuffix("_bucket") for name in re.findall(r"\bfreshet_\w+", text)}
    assert named
    assert named <= metrics


def test_a_counter_is_declared_once() -> None:
    """Each counter has a unique name and a help text."""
    counters = [each for kind in (*OF_THE_TABLE, PAGE_ONLY) for each in declared(kind)]
    assert len({each.name for each in counters}) == len(counters)
    assert all(each.help for each in counters)


@pytest.fixture(scope="module")
def application(catalogue: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    """Yield the application on a pipeline of its own; end it after the tests."""
    with application_on(catalogue, "counted", tmp_path_factory.mktemp("counted")) as made:
        made.start()
        yield made


@pytest.mark.integration
def test_the_table_and_the_page_say_what_happened(application: Application) -> None:
    """Table and page count known, unknown, unreadable and keyless events exactly; then no event waits."""
    application.send_sales(KNOWN)
    unknown = json.loads(sale(0)) | {"product_id": 10**9}
    keyless = json.loads(sale(0)) | {"product_id": None}
    application.send(*[json.dumps(unknown).encode()] * 4, *[json.dumps(keyless).encode()] * 3, *BAD)
    application.wait_until_caught_up()
    sent = KNOWN + 7 + len(BAD)
    application.wait(lambda: None if counted(application)["events"] == sent else "rows are missing", "counters")

    row = counted(application)
    assert (row["enriched"], row["unmatched"], row["rejected"]) == (KNOWN, 7, len(BAD))
    assert (row["absent"], row["without_key"]) == (4, 3)
    assert (row["cache_hits"], row["not_cached"]) == (KNOWN, 0)  # a worker preloads as many products as fit, here all
    assert row["pages_read"] >= 1
    kinds: Counter[str] = Counter()
    for (text,) in application.rows("SELECT rejected_by_reason FROM batch_counters WHERE pipeline = 'counted'"):
        kinds.update(json.loads(str(text)))
    assert kinds == BAD_KINDS

    newest = {name: float(str(value)) for name, value in zip(COLUMNS, application.rows(NEWEST)[0], strict=True)}
    assert newest["snapshot_version"] == 1
    assert newest["lag_events"] == 0
    assert 0 < newest["latency_mean_seconds"] <= newest["latency_most_seconds"] < SECONDS
    assert 0 < newest["latency_p50_seconds"] <= newest["latency_p99_seconds"] <= newest["latency_most_seconds"]
    assert 16 * 2**20 < newest["worker_bytes"] < 2**30
    assert all(newest[f"{phase}_seconds"] > 0 for phase in ("source", "read", "join", "load"))

    buckets: Counter[str] = Counter()
    for (text,) in application.rows("SELECT latency_seconds FROM batch_counters WHERE pipeline = 'counted'"):
        buckets.update(json.loads(str(text)))
    assert buckets.total() == sent

    page = scraped(application)
    assert page['freshet_latency_seconds_count{pipeline="counted"}'] == sent
    told = {name: page[f'freshet_{name}_total{{pipeline="counted"}}'] for name in ("events", "enriched", "absent")}
    assert told == {"events": sent, "enriched": KNOWN, "absent": 4}
    label = 'pipeline="counted",reason="not JSON"'
    assert page[f"freshet_rejected_total{{{label}}}"] == BAD_KINDS["not JSON"]
    assert page['freshet_lag_events{pipeline="counted"}'] == 0


@pytest.mark.integration
def test_what_was_shed_is_replayed_while_nothing_else_comes(application: Application) -> None:
    """While the stream is idle, replay jobs land all shed events, and the counters include them."""
    pipeline = application.pipeline.model_copy(update={"batch_seconds": 1e-9})  # a batch has no time to read a page
    folders, bootstrap = application.running.folders, application.running.kafka_bootstrap
    other = replace(incarnation_of(bootstrap, "counted", login("loader")), number=OTHER_SOURCE)
    shedder = Stream(pipeline, folders.snapshots("counted") / "v000001.pages", folders.shed("counted"), other)
    offsets = shedder.arrive(0, 900)
    expected = len(offsets) - sum(offset % 100 == 7 for offset in offsets)  # unreadable ones
    shed = shedder.run(0, offsets).counts.shed
    assert shed
    landed = f"SELECT 1 FROM counted_enriched WHERE source = {OTHER_SOURCE}"
    application.wait(
        lambda: None if len(application.rows(landed)) == expected else "events wait", "shed events to land"
    )
    application.wait(lambda: None if not shedder.files() else "there are files", "the end of the files")
    assert shedder.waiting() == Waiting()
    assert shedder.positions("shed") == set()
    replayed = "SELECT COALESCE(SUM(replayed), 0) FROM batch_counters WHERE pipeline = 'counted' AND batch IS NULL"
    application.wait(lambda: None if int(str(application.rows(replayed)[0][0])) >= shed else "no row", "its counters")
    page = scraped(application)
    assert page['freshet_replayed_total{pipeline="counted"}'] >= shed
    assert page['freshet_shed_waiting_events{pipeline="counted"}'] == 0


@pytest.mark.integration
def test_a_stream_that_is_behind_says_by_how_much(application: Application) -> None:
    """The lag of an application that is down is the broker's end offsets minus the offsets in `progress`."""
    lag = Lag(application.running.kafka_bootstrap, "counted")
    rows = application.rows(
        "SELECT kafka_partition, next_offset FROM progress WHERE pipeline = 'counted' AND source < 60000"
    )
    read = {int(str(part)): int(str(offset)) for part, offset in rows}
    assert lag.behind(read) == 0
    assert lag.behind({part: offset - 2 for part, offset in read.items()}) == 2 * len(read)
    assert lag.behind({}) == sum(read.values())
    lag.close()


SUMS = (
    "events", "enriched", "unmatched", "rejected", "cache_hits", "not_cached", "absent", "without_key", "pages_read",
)  # fmt: skip
COLUMNS = (
    "snapshot_version", "lag_events", "latency_mean_seconds", "latency_most_seconds", "worker_bytes",
    "latency_p50_seconds", "latency_p99_seconds",
    "source_seconds", "read_seconds", "join_seconds", "load_seconds",
)  # fmt: skip
NEWEST = f"SELECT {', '.join(COLUMNS)} FROM batch_counters WHERE pipeline = 'counted' ORDER BY id DESC LIMIT 1"


def counted(application: Application) -> dict[str, int]:
    """Return the sums over all rows of the pipeline."""
    sums = ", ".join(f"COALESCE(SUM({name}), 0)" for name in SUMS)
    (row,) = application.rows(f"SELECT {sums} FROM batch_counters WHERE pipeline = 'counted'")
    return {name: int(str(value)) for name, value in zip(SUMS, row, strict=True)}


def scraped(application: Application) -> dict[str, float]:
    """Return what Prometheus would read: each sample's name and labels, and its value."""
    config = application.running
    address = f"http://127.0.0.1:{config.metrics_port}{PATH}"
    answer = httpx.get(address, auth=(USER, config.secret("metrics_password")))
    assert answer.status_code == 200
    samples = [line for line in answer.text.splitlines() if not line.startswith("#")]
    parts = [re.fullmatch(r"(freshet_\w+\{.*\}) (\S+)", sample) for sample in samples]
    assert all(parts), samples
    return {part[1]: float(part[2]) for part in parts if part}
