"""A second pipeline in a running Airflow has its Dags and runs beside the demo's; a broken third file hurts nothing."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, get_args

import httpx
import pytest
from kafka import KafkaProducer

from foundation.connections import connect, login
from foundation.settings import ROOT
from services.demo import missing_dag
from services.waiting import wait_until
from spark_apps.master.snapshots import current
from spark_apps.monitoring.metrics_server import PATH, USER
from spark_apps.pipeline.dags import Job, dag_of
from spark_apps.running.lease import is_held
from spark_apps.running.starts import metrics_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foundation.settings import Settings
    from services.airflow_api import AirflowApi, Run

pytestmark = pytest.mark.integration
SEEN_SECONDS = 30.0  # as README.md promises
SECONDS = 240.0
VEHICLES, RIDES = 500, 2000
MASTER = """CREATE TABLE vehicle (
    vehicle BIGINT NOT NULL PRIMARY KEY, vehicle_key INT UNSIGNED NOT NULL UNIQUE, cents_per_km INT UNSIGNED NOT NULL,
    updated_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3))"""


def run_to_its_end(airflow: AirflowApi, dag: str, conf: dict[str, object] | None = None) -> Run:
    """Trigger a Dag and return its run after the end."""
    run_id = airflow.trigger(dag, conf)
    wait_until(lambda: airflow.run(dag, run_id).unfinished(), what=f"Dag {dag}", seconds=SECONDS)
    return airflow.run(dag, run_id)


def rows(running: Settings, query: str) -> list[tuple[object, ...]]:
    """Query the warehouse with the account of an analyst."""
    with connect(login("reader", running)) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


def dags_of(pipeline: str) -> set[str]:
    """Return the ids of a pipeline's Dags."""
    return {dag_of(job, pipeline) for job in get_args(Job)}


@pytest.fixture(scope="module")
def sales(running: Settings, airflow: AirflowApi) -> Iterator[Settings]:
    """Keep the demo's stream running."""
    wait_until(lambda: missing_dag(airflow), what="the Dags", seconds=SECONDS)
    if current(running.folders.snapshots("sales")) is None:
        for dag in ("load_catalogue", "sales.prepare", "sales.refresh"):
            assert run_to_its_end(airflow, dag).state == "success"
    airflow.trigger("sales.enrich")
    wait_until(lambda: None if is_held(login("loader", running), "sales") else "no", what="sales", seconds=SECONDS)
    yield running
    assert run_to_its_end(airflow, "sales.stop").state == "success"


@pytest.fixture(scope="module")
def rides(sales: Settings, airflow: AirflowApi) -> Iterator[Settings]:
    """Put the second pipeline's file beside the demo's, and take it away at the end."""
    file = sales.pipelines / "rides.toml"
    shutil.copy(ROOT / "tests" / "pipelines" / file.name, file)

    def missing() -> str | None:
        return ", ".join(dags_of("rides") - airflow.dags()) or None

    wait_until(missing, what="the Dags of the second file", seconds=SEEN_SECONDS)
    yield sales
    file.unlink()


def test_a_second_pipeline_is_prepared_published_and_enriched_beside_the_first(
    rides: Settings, airflow: AirflowApi
) -> None:
    """By its Dags alone: tables, snapshot, stream, check, announcement and stop, while the demo's stream runs."""
    with connect(login("owner", rides)) as connection, connection.cursor() as cursor:
        cursor.execute(MASTER)
        cursor.executemany(
            "INSERT INTO vehicle (vehicle, vehicle_key, cents_per_km) VALUES (%s, %s, %s)",
            [(number, number + 7000, number % 90 + 10) for number in range(VEHICLES)],
        )
    assert run_to_its_end(airflow, "rides.prepare").state == "success"
    producer = KafkaProducer(bootstrap_servers=rides.kafka_bootstrap)
    for number in range(RIDES):
        ride = {"vehicle": number % VEHICLES, "metres": number, "ended_at": "2026-01-02T03:04:05.678Z"}
        producer.send("rides", json.dumps(ride).encode())
    producer.close()
    assert run_to_its_end(airflow, "rides.refresh").state == "success"
    stream = airflow.trigger("rides.enrich")

    def missing() -> str | None:
        ((landed,),) = rows(rides, "SELECT COUNT(*) FROM rides_enriched")
        return None if landed == RIDES else f"{landed} of {RIDES} rides have landed"

    wait_until(missing, what="all rides to land", seconds=SECONDS)
    expected = {(n % VEHICLES + 7000, n, n % VEHICLES % 90 + 10) for n in range(RIDES)}
    assert set(rows(rides, "SELECT vehicle_key, metres, cents_per_km FROM rides_enriched")) == expected
    assert is_held(login("loader", rides), "sales")
    check_metrics(rides)

    checked = run_to_its_end(airflow, "rides.check")
    assert checked.state == "success"
    assert "expect_compound_columns_to_be_unique" in airflow.log(checked, "check")
    assert run_to_its_end(airflow, "rides.announce").state == "success"
    assert run_to_its_end(airflow, "rides.watch").state == "success"
    assert run_to_its_end(airflow, "rides.stop").state == "success"
    wait_until(lambda: airflow.run("rides.enrich", stream).unfinished(), what="the watching run", seconds=SECONDS)
    assert airflow.run("rides.enrich", stream).state == "success"
    assert is_held(login("loader", rides), "sales"), "the other stream goes on"


def check_metrics(running: Settings) -> None:
    """Assert that both applications serve their metrics, on different ports, and that their logs say where."""
    ports = {name: metrics_port(login("reader", running), name) for name in ("sales", "rides")}
    assert len({*ports.values()} - {None}) == 2
    for name, port in ports.items():
        address = f"http://127.0.0.1:{port}{PATH}"
        answer = httpx.get(address, auth=(USER, running.secret("metrics_password")))
        assert set(re.findall(r'pipeline="(\w+)"', answer.raise_for_status().text)) == {name}
        log = (running.state / "logs" / f"enrich_stream-{name}.log").read_text()
        assert f"metrics: served at {address}\n" in log


def test_a_broken_file_is_an_import_error_and_hurts_no_other_pipeline(rides: Settings, airflow: AirflowApi) -> None:
    """A third, broken file is named with field, rule and value in Airflow; all other Dags stay as they were."""
    before = airflow.dags()
    file = rides.pipelines / "broken.toml"
    text = (ROOT / "tests" / "pipelines" / "rides.toml").read_text()
    file.write_text(text.replace('name = "rides"', 'name = "broken"').replace("memory_mb = 8", "memory_mb = 3"))
    try:

        def missing() -> str | None:
            return None if airflow.import_errors() else "no import error"

        wait_until(missing, what="the import error", seconds=SEEN_SECONDS)
        (error,) = airflow.import_errors()
        assert "pipelines/broken.toml: memory_mb: Input should be greater than or equal to 8, got 3" in error
        assert airflow.dags() == before >= dags_of("sales") | dags_of("rides")
        assert run_to_its_end(airflow, "rides.announce").state == "success"
        assert run_to_its_end(airflow, "sales.watch").state == "success"
    finally:
        file.unlink()
    wait_until(lambda: ", ".join(airflow.import_errors()) or None, what="no import error", seconds=SEEN_SECONDS)
