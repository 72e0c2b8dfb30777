"""Long-lived tasks that are ended from Airflow's page, killed, or started twice."""

from __future__ import annotations

import os
import re
import signal
from typing import TYPE_CHECKING

import pytest

from foundation.connections import login
from foundation.settings import SECRET_NAMES
from services import stack
from services.demo import missing_dag, run_dag
from services.waiting import wait_until
from spark_apps.master.snapshots import current
from spark_apps.running import stop
from spark_apps.running.lease import is_running
from spark_apps.running.stop import ASKED_BY

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psutil

    from foundation.settings import Settings
    from services.airflow_api import AirflowApi, Run

pytestmark = pytest.mark.integration
SECONDS = 240.0


def wait(met: object, what: str) -> None:
    """Wait for a condition."""
    wait_until(met, what=what, seconds=SECONDS)  # type: ignore[arg-type]


def run_to_its_end(airflow: AirflowApi, dag: str, conf: dict[str, object] | None = None) -> Run:
    """Trigger a Dag and return its run after the end."""
    run_id = airflow.trigger(dag, conf)
    wait(lambda: airflow.run(dag, run_id).unfinished(), f"Dag {dag}")
    return airflow.run(dag, run_id)


def processes(running: Settings, word: str) -> list[psutil.Process]:
    """The stack's processes whose command line contains a word."""
    return [each.process for each in stack.started() if each.state == running.state and word in each.command_line]


def secrets_in(process: psutil.Process, running: Settings) -> set[str]:
    """The names of the secrets in a process' environment."""
    values = set(process.environ().values())
    return {name for name in SECRET_NAMES if running.secret(name) in values}


@pytest.fixture(scope="module")
def prepared(running: Settings, airflow: AirflowApi) -> Settings:
    """The stack with topics, tables and a published master order; no application runs."""
    wait(lambda: missing_dag(airflow), "the Dags")
    if current(running.folders.snapshots("sales")) is None:
        assert run_to_its_end(airflow, "prepare_warehouse", {"products": 2000}).state == "success"
        assert run_to_its_end(airflow, "refresh_master_order").state == "success"
    for run_id in airflow.runs("enrich_stream", "running"):
        airflow.fail_run("enrich_stream", run_id)
    wait(lambda: "it runs" if is_running(login("loader", running), "sales") else None, "the application to end")
    return running


@pytest.fixture(scope="module")
def stream(prepared: Settings, airflow: AirflowApi) -> Iterator[str]:
    """An active run of the Dag enrich_stream."""
    run_id = airflow.trigger("enrich_stream")
    wait(lambda: None if is_running(login("loader", prepared), "sales") else "not yet", "the application to start")
    yield run_id
    for each in airflow.runs("enrich_stream", "running"):
        airflow.fail_run("enrich_stream", each)


def test_a_generator_that_cannot_start_fails_its_task_with_the_reason(prepared: Settings, airflow: AirflowApi) -> None:
    """Here its exponent is out of bounds."""
    assert prepared
    refused = run_to_its_end(airflow, "deploy_generator", {"exponent": 1e300})
    assert refused.failed_tasks() == ["generate"]
    assert "exponent" in airflow.log(refused, "generate")
    assert "got 1e+300" in airflow.log(refused, "generate")


def test_a_generator_that_airflow_ends_flushes_and_reports_its_events(prepared: Settings, airflow: AirflowApi) -> None:
    """No producer keeps running."""
    run_id = airflow.trigger("deploy_generator", {"rate": 200, "duration": 3000})

    def log() -> str:
        return airflow.log(airflow.run("deploy_generator", run_id), "generate")

    wait(lambda: None if processes(prepared, "generator run") else "not yet", "the producer to start")
    wait(lambda: None if "acknowledged" in log() else "not yet", "its first report")
    assert [secrets_in(each, prepared) for each in processes(prepared, "generator run")] == [set()]
    airflow.fail_run("deploy_generator", run_id)
    wait(lambda: "it runs" if processes(prepared, "generator run") else None, "the producer to end")
    assert re.search(r"acknowledged (\d+) of \1 events", log())
    assert airflow.run("deploy_generator", run_id).failed_tasks() == ["generate"]


def test_the_application_of_a_killed_task_ends_and_the_next_try_continues(
    prepared: Settings, airflow: AirflowApi, stream: str
) -> None:
    """The orphan ends by itself."""
    (driver,) = [each for each in processes(prepared, "enrich_stream.py") if each.name() == "java"]
    assert secrets_in(driver, prepared) == {"loader_password", "metrics_password"}
    task = int(driver.environ()[ASKED_BY])
    os.kill(task, signal.SIGKILL)
    wait(lambda: "it runs" if driver.is_running() else None, "the orphan to end")
    wait(lambda: None if is_running(login("loader", prepared), "sales") else "not yet", "the next try")
    run = airflow.run("enrich_stream", stream)
    assert airflow.task(run, "enrich")["try_number"] == 2


def test_an_active_run_is_not_started_again(prepared: Settings, airflow: AirflowApi, stream: str) -> None:
    """Neither the stream by a second demo, nor an active demo by a second `make demo`."""
    first = airflow.trigger("demo", {"products": 2000, "rate": 400, "duration": 10})
    lines: list[str] = []
    run_dag(airflow, prepared, lines.append)
    assert f"  a run is already active: following {first}" in lines
    assert airflow.run("demo", first).state == "success"
    assert airflow.runs("enrich_stream", "running") == [stream]
    assert airflow.runs("enrich_stream", "queued") == []


def test_an_application_that_is_ended_from_airflows_page_has_failed(
    prepared: Settings, airflow: AirflowApi, stream: str
) -> None:
    """It leaves no process."""
    airflow.fail_run("enrich_stream", stream)
    wait(lambda: "it runs" if processes(prepared, "enrich_stream.py") else None, "the application to end")
    run = airflow.run("enrich_stream", stream)
    assert (run.state, run.tasks["enrich"]) == ("failed", "failed")


def test_a_stop_request_between_two_tries_ends_the_run(prepared: Settings, airflow: AirflowApi) -> None:
    """The next try sees it, and ends with success."""
    loader, run_id = login("loader", prepared), airflow.trigger("enrich_stream")
    wait(lambda: None if is_running(loader, "sales") else "not yet", "the application to start")
    for each in processes(prepared, "enrich_stream.py"):
        each.kill()
    wait(lambda: "it runs" if is_running(loader, "sales") else None, "the application to end")
    stop.request(loader, "sales")
    wait(lambda: airflow.run("enrich_stream", run_id).unfinished(), "the run to end")
    run = airflow.run("enrich_stream", run_id)
    assert run.state == "success"
    assert airflow.task(run, "enrich")["try_number"] == 2
