"""Each event lands exactly once, whatever is killed and when, on the real broker, database and Spark."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psutil
import pyarrow as pa
import pytest

from foundation.connections import connect, login
from foundation.errors import TopicError
from services import health, stack
from services.waiting import wait_until
from spark_apps.enriching.enricher import Enricher
from spark_apps.master.publish import publish
from spark_apps.master.ranking import build_ranking
from spark_apps.master.snapshots import current
from spark_apps.pipeline.topics import TopicIncarnation
from tests.frozen import frozen
from tests.spark_apps.application import KINDS, SECONDS, Application, application_on, newest, sale
from tests.topics import read_enriched

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foundation.settings import Settings
    from spark_apps.enriching.report import TaskReport

pytestmark = pytest.mark.integration
BURST = 3000
NEW_PRODUCT, UNKNOWN_PRODUCT = 999_999, 999_998
FROZEN_SECONDS = 2 * SECONDS  # longer than any wait in a test
COMPLAINTS = 3  # in an outage: after the third, three pauses differ
Position = tuple[object, object]
Rows = dict[str, dict[Position, tuple[str, ...]]]


@pytest.fixture(scope="module")
def application(catalogue: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    """Yield the application on a pipeline of its own, with products as master data; end it after the tests."""
    with application_on(catalogue, "kills", tmp_path_factory.mktemp("application")) as made:
        yield made


@pytest.fixture(autouse=True)
def _runs(application: Application) -> None:
    """Start the application, if it does not run, before every test."""
    if application.ended:
        application.start()


def landed_rows(application: Application, source: int) -> Rows:
    """Return the rows of a source in each table by position; the count would show a duplicate position."""
    columns = dict.fromkeys(KINDS, "") | {"enriched": ", event_id, product_key, quantity, price_cents"}
    landed: Rows = {}
    for kind in KINDS:
        found = application.rows(
            f"SELECT kafka_partition, kafka_offset{columns[kind]} FROM kills_{kind} WHERE source = {source}"
        )
        landed[kind] = {(row[0], row[1]): tuple(map(str, row[2:])) for row in found}
        assert len(landed[kind]) == len(found)
    return landed


def expected_rows(application: Application) -> Rows:
    """Return the rows that a look-up by hand gives for every message of the topic."""
    found = application.rows("SELECT product_id, product_key, price_cents FROM product")
    products = {product: (key, price) for product, key, price in found}
    expected: Rows = {kind: {} for kind in KINDS}
    for position, value in application.topic().items():
        if not value or not value.startswith(b"{"):
            expected["rejected"][position] = ()
            continue
        event = json.loads(value)
        if event["product_id"] not in products:
            expected["unmatched"][position] = ()
            continue
        key, price = products[event["product_id"]]
        expected["enriched"][position] = (event["event_id"], str(key), str(event["quantity"]), str(price))
    return expected


def assert_each_event_landed_once(application: Application) -> None:
    """Wait until the application has caught up; then compare each row, and check the accounting in SQL."""
    application.wait_until_caught_up()
    assert landed_rows(application, application.source()) == expected_rows(application)
    ((consumed,),) = application.rows("SELECT SUM(next_offset - first_offset) FROM progress WHERE pipeline = 'kills'")
    assert consumed == application.landed()


def send_burst(application: Application) -> None:
    """Send sales to all partitions, a few of them unreadable or with an unknown product."""
    values = [sale(number) for number in range(BURST)]
    values[::50] = [b"garbage"] * len(values[::50])
    values[1::50] = [json.dumps(json.loads(sale(0)) | {"product_id": UNKNOWN_PRODUCT}).encode()] * len(values[1::50])
    for part in range(application.pipeline.source.partitions):
        application.send(*values[part :: application.pipeline.source.partitions], partition=part)


@contextmanager
def half_done_batch(application: Application) -> Iterator[None]:
    """In the block, one task of a batch has committed, and the other has written its rows and cannot commit.

    The row in `progress` that the other task writes last is locked here.
    """
    application.send(sale(0), partition=0)
    application.wait_until_caught_up()
    source, of_first = application.source(), "kafka_partition = 0"
    before = application.landed()
    with (
        connect(login("owner", application.running)) as owner,
        connect(login("reader", application.running)) as dirty,
        owner.cursor() as lock,
        dirty.cursor() as look,
    ):
        look.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
        lock.execute(f"SELECT * FROM progress WHERE pipeline = 'kills' AND source = {source} AND {of_first} FOR UPDATE")
        assert len(lock.fetchall()) == 1
        family = application.processes("")
        for process in family:
            process.suspend()
        send_burst(application)  # all of the burst is in the topic when the batch begins
        for process in family:
            process.resume()

        def obstacle() -> str | None:
            rows = f"SELECT COUNT(*) FROM kills_enriched WHERE source = {source} AND {of_first}"
            look.execute(rows)
            written, committed = list(look.fetchall()), application.rows(rows)
            return "not yet" if written == committed or application.landed() == before else None

        application.wait(obstacle, "half of a batch to be committed, and half of it written")
        yield
        owner.rollback()


def test_the_driver_is_killed_in_the_middle_of_a_batch(application: Application) -> None:
    """Driver and workers are killed when half of a batch is committed; the next start runs the batch again."""
    with half_done_batch(application):
        application.kill()
    application.send_sales(10)
    application.start()
    assert_each_event_landed_once(application)


def test_the_topic_is_made_again_while_the_application_runs(application: Application) -> None:
    """Spark continues at the old topic's offsets; the application does not take those events for the old topic's."""
    application.send_sales(30)
    assert_each_event_landed_once(application)
    old, before, ends = application.source(), expected_rows(application), application.ends()
    planned = len(list((application.checkpoint / "offsets").iterdir()))
    driver, family = application.driver(), application.processes("")
    for process in family:
        process.suspend()
    application.make_topic_again()
    for part, end in ends.items():  # so that the old topic's next offset is one of the new topic's
        application.send(*[sale(number) for number in range(end + 20)], partition=part)
    for process in family:
        if process != driver:
            process.resume()
    application.wait(
        lambda: None if len(list((application.checkpoint / "offsets").iterdir())) > planned else "not yet",
        "Spark to plan a batch of the new topic's events for the old one",
    )
    driver.resume()
    assert_each_event_landed_once(application)
    assert application.source() != old
    assert landed_rows(application, old) == before
    assert (
        "was deleted and recreated. Nothing to do: the application reads the new topic from offset 0 on"
        in application.printed()
    )


def test_a_task_keeps_nothing_when_its_topic_is_another_one_by_the_end(application: Application) -> None:
    """A task whose topic is recreated before its end commits no row and sends no message."""
    running, pipeline = application.running, application.pipeline
    gone = TopicIncarnation(application.source(), running.kafka_bootstrap, pipeline.source.topic, "the old topic's id")
    snapshot = current(running.folders.snapshots("kills"))
    assert snapshot
    columns = [pa.array([0, 0], pa.int32()), pa.array([10**9, 10**9 + 1], pa.int64()), pa.array([sale(1), b"garbage"])]
    columns.append(pa.array([0, 0], pa.timestamp("us", "UTC")))
    batch = pa.record_batch(columns, ["partition", "offset", "value", "timestamp"])
    given: list[pa.RecordBatch] = []
    reported: list[TaskReport] = []
    sheds = running.folders.shed("kills")
    task = Enricher(pipeline, gone, snapshot.path, snapshot.plan, "product_key", sheds, None, reported.append)
    with pytest.raises(TopicError, match="was deleted and recreated"):
        given.extend(task([batch]))
    assert given == []
    assert reported == []
    assert application.landed(f"kafka_offset >= {10**9}") == 0


def test_the_topic_is_made_again_while_the_application_is_away(application: Application) -> None:
    """After the topic is recreated while the application is down, the new topic is read from offset 0."""
    application.send_sales(30)
    assert_each_event_landed_once(application)
    old, before = application.source(), expected_rows(application)
    application.kill()
    application.make_topic_again()
    application.send_sales(40)
    application.start()
    assert_each_event_landed_once(application)
    assert application.source() != old
    assert landed_rows(application, old) == before


def test_a_worker_is_killed_while_it_works(application: Application) -> None:
    """A worker is killed after it wrote rows and before its commit; the batch runs again beside the other's rows."""
    with half_done_batch(application):
        application.wait(lambda: None if len(loading_workers(application)) == 1 else "the other works", "one worker")
        loading_workers(application)[0].kill()
    assert_each_event_landed_once(application)
    assert "enrich_stream: a Python worker died in the middle of its work" in application.printed()


def test_all_workers_are_killed_while_they_work(application: Application) -> None:
    """After all workers and their daemon are killed in a batch, new workers run the batch again."""
    with half_done_batch(application):
        application.kill_processes("pyspark.daemon")
    assert_each_event_landed_once(application)


def test_the_sink_is_done_but_the_commit_is_lost(application: Application) -> None:
    """When the checkpoint's newest commit is lost, its batch runs again and changes no row."""
    application.send_sales(10)
    application.wait_until_caught_up()
    application.lose_newest_commit()
    application.start()
    application.send_sales(10)
    assert_each_event_landed_once(application)


def test_the_plan_of_a_batch_is_damaged(application: Application) -> None:
    """For a batch plan that is damaged, the start states which file to remove; the batch is then planned again."""
    application.send_sales(10)
    application.wait_until_caught_up()
    application.lose_newest_commit()
    plan = newest(application.checkpoint / "offsets")
    plan.write_text("")
    with pytest.raises(
        AssertionError, match=rf"{re.escape(str(plan))} is damaged\. Remove that file: its batch is planned again\."
    ):
        application.start()
    plan.unlink()
    application.start()
    assert_each_event_landed_once(application)


def test_the_checkpoint_is_gone_altogether(application: Application) -> None:
    """Without a checkpoint the whole topic is read again, and no row changes."""
    application.kill()
    shutil.rmtree(application.checkpoint)
    application.start()
    application.send_sales(10)
    assert_each_event_landed_once(application)


@pytest.mark.parametrize(
    ("service", "says"),
    [("mariadb", "warehouse error: Can't connect to MySQL server"), ("kafka", "no broker answers at 127.0.0.1:")],
)
def test_a_service_is_away_and_comes_back(application: Application, service: str, says: str) -> None:
    """During an outage the application reports the service and retries at growing intervals, then continues."""
    before = len(application.printed())

    def complaints() -> list[tuple[str, str]]:
        return re.findall(r"enrich_stream: (.+?) It retries in (\d+) s", application.printed()[before:])

    application.send_sales(BURST)
    with stack.supervisor(application.running) as control:
        control.stopProcess(service)
    if service == "mariadb":
        application.send_sales(10)  # without events to write, the application does not notice the outage
    application.wait(lambda: None if len(complaints()) >= COMPLAINTS else "not yet", "complaints")
    stack.start_programs(application.running, service)
    wait_until(lambda: health.CHECKS[service](application.running), what=service, seconds=SECONDS)
    application.send_sales(10)
    assert_each_event_landed_once(application)
    assert any(says in line for line, _ in complaints()), complaints()
    pauses = [int(pause) for _, pause in complaints()]
    assert pauses[0] == 1
    assert pauses == sorted(pauses)
    assert len(set(pauses)) > 1


def test_what_the_warehouse_never_takes_ends_it_and_loses_nothing(application: Application) -> None:
    """A row that the warehouse refuses ends the application after a few tries; once it fits, a start continues."""
    application.send_sales(10)
    application.wait_until_caught_up()
    printed, alter = len(application.printed()), "ALTER TABLE kills_enriched"
    with connect(login("owner", application.running)) as connection, connection.cursor() as cursor:
        cursor.execute(f"{alter} ADD CONSTRAINT few CHECK (quantity < 1000)")
        application.send(sale(1), json.dumps(json.loads(sale(0)) | {"quantity": 1000}).encode(), sale(2))
        assert application.wait_for_end() == 1
        cursor.execute(f"{alter} DROP CONSTRAINT few")
    said = application.printed()[printed:]
    (line,) = re.findall(r"^enrich_stream: (.+ It failed 4 .+)$", said, re.MULTILINE)
    assert line.startswith("table 'kills_enriched' must take rows as they are: ")
    assert "CONSTRAINT `few` failed" in line
    assert "4 times: time does not cure it. Correct the cause and start again; nothing is lost" in line
    assert said.count(" It retries in ") == 3
    application.start()
    assert_each_event_landed_once(application)


def test_a_second_application_refuses_and_the_first_one_stops_on_sigterm(application: Application) -> None:
    """A second application ends with the reason and a nonzero exit code; SIGTERM ends the first with exit code 0."""
    second = Application(application.running, application.pipeline, application.output.parent / "second")
    with pytest.raises(AssertionError, match="another application works on it"):
        second.start()
    application.send_sales(BURST)
    assert application.terminate() == 0
    assert "stopped as asked" in application.printed()
    assert "broken off" not in application.printed()


def test_a_warehouse_that_hangs_in_a_batch_holds_a_stop_up_for_seconds_only(application: Application) -> None:
    """A stop cancels a batch that waits for a warehouse that hangs; the next start runs the batch again."""
    with half_done_batch(application), frozen(application.running, "mariadb", FROZEN_SECONDS):
        assert application.terminate() == 0
    said = application.printed()
    assert said.index("is broken off") < said.rindex("stopped as asked")
    application.start()
    assert_each_event_landed_once(application)


def test_what_cannot_be_enriched_lands_beside_and_moves_when_its_key_becomes_known(application: Application) -> None:
    """An event that cannot be enriched is in another table; read again with its product known, it moves."""
    unknown = json.loads(sale(0)) | {"product_id": NEW_PRODUCT}
    without = json.loads(sale(0)) | {"product_id": None}
    rejected = "SELECT event FROM kills_rejected"
    unmatched = f"SELECT product_id FROM kills_unmatched WHERE COALESCE(product_id, 0) <> {UNKNOWN_PRODUCT}"
    before = Counter(application.rows(rejected))
    application.send(b"garbage", None, b"", b"\xff\xfe", json.dumps(unknown).encode(), json.dumps(without).encode())
    assert_each_event_landed_once(application)
    assert Counter(application.rows(rejected)) - before == Counter([(b"",), (None,), (b"garbage",), (b"\xff\xfe",)])
    assert sorted(application.rows(unmatched), key=str) == [(NEW_PRODUCT,), (None,)]

    application.kill()
    owner, master = login("owner", application.running), application.pipeline.master
    with connect(owner) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE made AS SELECT * FROM product LIMIT 1")
        cursor.execute("UPDATE made SET product_id = %s, product_key = %s, price_cents = 5", [NEW_PRODUCT] * 2)
        cursor.execute("INSERT INTO product SELECT * FROM made")
    publish(owner, master, build_ranking(owner, master), application.running.folders.snapshots("kills"))
    shutil.rmtree(application.checkpoint)
    application.start()
    application.send_sales(10)
    application.wait(
        lambda: None if application.rows("SELECT 1 FROM kills_enriched WHERE price_cents = 5") else "not yet",
        "the move",
    )
    assert_each_event_landed_once(application)
    assert application.rows(unmatched) == [(None,)]


def test_messages_of_the_enriched_topic_say_where_their_event_came_from(application: Application) -> None:
    """A batch that runs again sends duplicates; a consumer that drops known positions has each event once."""
    source, bootstrap = application.source(), application.running.kafka_bootstrap
    application.send_sales(10)
    application.wait_until_caught_up()
    application.lose_newest_commit()
    _, before = read_enriched(bootstrap, "kills.enriched", source)
    application.start()
    application.send_sales(10)
    application.wait_until_caught_up()
    assert application.terminate() == 0  # so that every message is sent
    seen, repeats = read_enriched(bootstrap, "kills.enriched", source)
    assert repeats > before
    events = {position: json.loads(value) for position, value in seen.items()}
    assert {
        position: (event["event_id"], str(event["product_key"]), str(event["quantity"]), str(event["price_cents"]))
        for position, event in events.items()
    } == landed_rows(application, source)["enriched"]


def loading_workers(application: Application) -> list[psutil.Process]:
    """Return the workers with a connection to the warehouse; before that, their batch can still be left out."""
    port = application.running.mariadb_port
    at_warehouse = {each.pid for each in psutil.net_connections("tcp") if each.raddr and each.raddr.port == port}
    return [worker for worker in application.processes("pyspark.daemon") if worker.pid in at_warehouse]
