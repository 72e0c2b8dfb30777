"""Whatever is killed, whenever: every event lands once, none is lost. On the real broker, database and Spark."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from services import health, stack
from services.waiting import wait_until
from services.warehouse import login
from spark_apps.master.catalogue import load_catalogue
from spark_apps.master.publish import publish
from spark_apps.master.ranking import build_ranking
from spark_apps.master.tables import prepare
from spark_apps.pipeline import load_pipeline
from spark_apps.tables import create_tables
from spark_apps.topics import create_topics
from tests.spark_apps.application import PIPELINES, SECONDS, Application

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from services.settings import Settings

pytestmark = pytest.mark.integration
PRODUCTS = 2000
BURST = 3000
Position = tuple[object, object]


@pytest.fixture(scope="module")
def application(migrated: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    """The application on a pipeline of its own, with products to find; ended after the tests."""
    owner = login("owner", migrated)
    load_catalogue(owner, PRODUCTS)
    pipeline = load_pipeline("kills", PIPELINES)
    create_topics(migrated.kafka_bootstrap, pipeline)
    create_tables(owner, pipeline)
    prepare(owner, pipeline.master)
    publish(owner, pipeline.master, build_ranking(owner, pipeline.master), migrated.state / "snapshots" / "kills")
    made = Application(migrated, pipeline, tmp_path_factory.mktemp("application"))
    yield made
    if not made.ended:
        made.kill()


@pytest.fixture(autouse=True)
def _runs(application: Application) -> None:
    """Every test begins with an application that runs."""
    if application.ended:
        application.start()


def landed_rows(application: Application) -> dict[Position, tuple[str, ...]]:
    """The enriched rows by position; more than one of a position would be seen by the count."""
    found = application.rows(
        "SELECT kafka_partition, kafka_offset, event_id, product_key, quantity, price_cents FROM kills_enriched "
        "WHERE source = (SELECT MAX(source) FROM source WHERE topic = 'kills')"
    )
    rows = {(row[0], row[1]): tuple(map(str, row[2:])) for row in found}
    assert len(rows) == len(found)
    return rows


def expected_rows(application: Application) -> dict[Position, tuple[str, ...]]:
    """What a look-up by hand makes of every message of the topic."""
    found = application.rows("SELECT product_id, product_key, price_cents FROM product")
    products = {product: (key, price) for product, key, price in found}
    expected: dict[Position, tuple[str, ...]] = {}
    for position, value in application.topic().items():
        event = json.loads(value)
        key, price = products[event["product_id"]]
        expected[position] = (event["event_id"], str(key), str(event["quantity"]), str(price))
    return expected


def assert_each_event_landed_once(application: Application) -> None:
    """Wait until the application has caught up; then compare row by row, and the accounting in SQL."""
    application.wait_until_caught_up()
    assert landed_rows(application) == expected_rows(application)
    ((consumed,),) = application.rows("SELECT SUM(next_offset - first_offset) FROM progress WHERE pipeline = 'kills'")
    assert consumed == application.landed()


def test_the_driver_is_killed_in_the_middle_of_a_batch(application: Application) -> None:
    """With its workers, while rows are being loaded; the next one goes on."""
    before = application.landed()
    application.send_sales(BURST)
    application.wait(lambda: None if application.landed() > before else "nothing landed yet", "the batch to begin")
    application.send_sales(BURST)
    application.kill()
    application.send_sales(10)
    application.start()
    assert_each_event_landed_once(application)


def test_a_worker_is_killed_while_it_works(application: Application) -> None:
    """Spark does its task again, in another worker."""
    application.send_sales(10)
    application.wait_until_caught_up()
    workers = application.processes("pyspark.daemon")
    assert workers
    application.send_sales(BURST)
    for worker in workers:
        worker.kill()
    assert_each_event_landed_once(application)


def test_the_sink_is_done_but_the_commit_is_lost(application: Application) -> None:
    """The newest commit of the checkpoint is removed: its batch is done again and changes nothing."""
    application.send_sales(10)
    application.wait_until_caught_up()
    application.kill()
    commits = checkpoint(application) / "commits"
    newest = max((file for file in commits.iterdir() if file.name.isdigit()), key=lambda file: int(file.name))
    newest.unlink()
    (commits / f".{newest.name}.crc").unlink(missing_ok=True)
    application.start()
    application.send_sales(10)
    assert_each_event_landed_once(application)


def test_the_checkpoint_is_gone_altogether(application: Application) -> None:
    """All of the topic is read again, and changes nothing."""
    application.kill()
    shutil.rmtree(checkpoint(application))
    application.start()
    application.send_sales(10)
    assert_each_event_landed_once(application)


@pytest.mark.parametrize("service", ["mariadb", "kafka"])
def test_a_service_is_away_and_comes_back(application: Application, service: str) -> None:
    """Stopped until the application has noticed; it says so, waits and goes on by itself."""
    complaints = application.printed().count("goes on in")
    with stack.supervisor(application.running) as control:
        control.stopProcess(service)
    if service == "mariadb":
        application.send_sales(10)
        application.wait(
            lambda: None if application.printed().count("goes on in") > complaints else "no word of it yet",
            "a complaint",
        )
    with stack.supervisor(application.running) as control:
        control.startProcess(service)
    wait_until(lambda: health.CHECKS[service](application.running), what=service, seconds=SECONDS)
    application.send_sales(10)
    assert_each_event_landed_once(application)


def test_a_second_application_refuses_and_the_first_one_stops_on_sigterm(application: Application) -> None:
    """With the reason in one line, and an exit code that is not zero; asked to end, the first ends well."""
    second = Application(application.running, application.pipeline, application.output.parent / "second")
    with pytest.raises(AssertionError, match="another application works on it"):
        second.start()
    assert application.terminate() == 0
    assert "stopped as asked, between two batches" in application.printed()


def checkpoint(application: Application) -> Path:
    """The folder of the newest source's checkpoint."""
    folders = (application.running.state / "checkpoints" / "kills").iterdir()
    return max(folders, key=lambda folder: int(folder.name))
