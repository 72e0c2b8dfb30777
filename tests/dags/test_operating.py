"""Long-lived tasks keep their rules when an operator ends them, kills them or starts them twice."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
import pytest

from foundation.connections import connect, login
from foundation.settings import SECRET_NAMES
from quality.results import record
from services import health, stack
from services.demo import missing_dag, run_dag
from services.waiting import wait_until
from spark_apps.keep_program import role
from spark_apps.master.snapshots import current
from spark_apps.running.lease import is_held
from spark_apps.running.wish import read_wish, wish_stopped
from tests.posted import posted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from foundation.connections import Login
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
    """Return the stack's processes whose command line contains a word."""
    return [each.process for each in stack.started() if each.state == running.state and word in each.command_line]


def secrets_in(process: psutil.Process, running: Settings) -> set[str]:
    """Return the names of the secrets in a process' environment."""
    values = set(process.environ().values())
    return {name for name in SECRET_NAMES if running.secret(name) in values}


@pytest.fixture(scope="module")
def prepared(running: Settings, airflow: AirflowApi) -> Settings:
    """Prepare topics, tables and a published master order; no program runs yet."""
    wait(lambda: missing_dag(airflow), "the Dags")
    if current(running.folders.snapshots("sales")) is None:
        assert run_to_its_end(airflow, "load_catalogue", {"products": 2000}).state == "success"
        assert run_to_its_end(airflow, "sales.prepare").state == "success"
        assert run_to_its_end(airflow, "sales.refresh").state == "success"
    for dag in ("sales.stop", "stop_generator"):
        assert run_to_its_end(airflow, dag).state == "success"
    return running


@pytest.fixture
def stream(prepared: Settings, airflow: AirflowApi) -> Iterator[str]:
    """Start a run of the Dag sales.enrich, which monitors the application; stop both afterwards."""
    run_id = airflow.trigger("sales.enrich")
    wait(lambda: None if is_held(login("loader", prepared), "sales") else "not yet", "the application to start")
    wait(lambda: None if airflow.run("sales.enrich", run_id).tasks["enrich"] == "deferred" else "no", "the watch")
    yield run_id
    assert run_to_its_end(airflow, "sales.stop").state == "success"


def drivers(running: Settings) -> list[psutil.Process]:
    """Return Spark's drivers that run now."""
    return [each for each in processes(running, "enrich_stream.py") if each.name() == "java"]


def test_a_stop_stays_a_stop(prepared: Settings, airflow: AirflowApi, stream: str) -> None:
    """A second run leaves the running application alone; after a stop, the run that monitors it ends with success."""
    second = run_to_its_end(airflow, "sales.enrich")
    assert second.state == "success"
    assert "runs already, since" in airflow.log(second, "enrich")
    assert stream in airflow.log(second, "enrich")
    assert len(drivers(prepared)) == 1
    assert run_to_its_end(airflow, "sales.stop").state == "success"
    assert processes(prepared, "enrich_stream.py") == []
    wait(lambda: airflow.run("sales.enrich", stream).unfinished(), "the watching run to end")
    assert airflow.run("sales.enrich", stream).state == "success"
    wish = read_wish(login("loader", prepared), "sales", "enrich_stream")
    assert wish
    assert not wish.running


def test_a_run_from_before_the_stop_starts_nothing(prepared: Settings, airflow: AirflowApi) -> None:
    """A run that was triggered before a stop, and starts after the stop, does not start the application."""
    with stack.supervisor(prepared) as control:
        control.stopProcess("airflow:airflow-scheduler")
    queued = airflow.trigger("sales.enrich")
    wish_stopped(login("loader", prepared), "sales", "enrich_stream", by="operator")
    with stack.supervisor(prepared) as control:
        control.startProcess("airflow:airflow-scheduler")
    wait(lambda: airflow.run("sales.enrich", queued).unfinished(), "the queued run")
    run = airflow.run("sales.enrich", queued)
    assert run.state == "success"
    assert "was stopped by operator at" in airflow.log(run, "enrich")
    assert processes(prepared, "enrich_stream.py") == []


def test_the_stream_outlives_airflow(prepared: Settings, airflow: AirflowApi, stream: str) -> None:
    """After kill -9 of Airflow's scheduler, tasks, triggerer and web server, the same application still runs."""
    (driver,) = drivers(prepared)
    for component in ("scheduler", "triggerer", "api-server"):
        for each in processes(prepared, f"airflow {component}"):
            with suppress(psutil.NoSuchProcess):
                each.kill()
    wait(lambda: health.airflow(prepared), "Airflow to come back")
    assert drivers(prepared) == [driver]
    assert airflow.run("sales.enrich", stream).unfinished()
    assert run_to_its_end(airflow, "sales.stop").state == "success"
    wait(lambda: airflow.run("sales.enrich", stream).unfinished(), "the watching run to end")
    assert airflow.run("sales.enrich", stream).state == "success"


def test_a_killed_keeper_takes_its_application_along_and_has_a_successor(
    prepared: Settings, airflow: AirflowApi, stream: str
) -> None:
    """A killed keeper's application ends; the run that monitors it starts one successor within a minute."""
    loader = login("loader", prepared)
    (driver,) = drivers(prepared)
    secrets = secrets_in(driver, prepared)
    assert secrets == {"loader_password", "metrics_password"}
    (keeper,) = processes(prepared, "spark_apps.keep_program")
    keeper.kill()
    wait(lambda: "it runs" if driver.is_running() else None, "the application without a keeper to end")
    wait(lambda: None if is_held(loader, "sales", role("enrich_stream")) else "not yet", "another keeper")
    wait(lambda: None if is_held(loader, "sales") else "not yet", "the application")
    assert len(drivers(prepared)) == 1
    assert airflow.run("sales.enrich", stream).unfinished()


def test_a_killed_application_is_started_again_without_airflow(prepared: Settings, stream: str) -> None:
    """While Airflow's scheduler is down, the keeper restarts an application that was killed."""
    assert stream
    (driver,) = drivers(prepared)
    with stack.supervisor(prepared) as control:
        control.stopProcess("airflow:airflow-scheduler")
    driver.kill()
    wait(lambda: "it runs" if driver.is_running() else None, "its end")
    wait(lambda: None if is_held(login("loader", prepared), "sales") else "not yet", "the application")
    with stack.supervisor(prepared) as control:
        control.startProcess("airflow:airflow-scheduler")
    wait(lambda: health.airflow(prepared), "Airflow to come back")


def test_a_paused_dag_turns_the_watch_red_and_is_told_once(
    prepared: Settings, airflow: AirflowApi, stream: str
) -> None:
    """While a wanted stream's Dag is paused, sales.watch is red; that is told once, and once that it is well."""
    assert stream
    for suite in ("product", "sales_enriched"):  # what other tests have left is not the matter here
        record(login("loader", prepared), "sales", suite, 1, [])
    with posted() as (address, messages):
        connection = {"connection_id": "freshet_webhook", "conn_type": "http", "host": address}
        airflow._http.post("/api/v2/connections", json=connection).raise_for_status()  # noqa: SLF001
        pause(airflow, paused=True)
        try:
            for _ in range(2):
                red = run_to_its_end(airflow, "sales.watch")
                assert red.failed_tasks() == ["watch"]
                assert "Dag sales.enrich is paused, so nothing brings back" in airflow.log(red, "watch")
            pause(airflow, paused=False)
            assert run_to_its_end(airflow, "sales.watch").state == "success"
            wait(lambda: None if len(messages) > 1 else f"{messages}", "the second message")
        finally:
            pause(airflow, paused=False)
            airflow._http.delete("/api/v2/connections/freshet_webhook").raise_for_status()  # noqa: SLF001
    assert [(each["dag"], each["task"], each["state"]) for each in messages] == [
        ("sales.watch", "watch", "failed"),
        ("sales.watch", "watch", "is well again"),
    ]
    assert "Dag sales.enrich is paused" in messages[0]["line"]
    assert messages[0]["link"].startswith(f"{prepared.airflow_api}/dags/sales.watch/runs/")


def pause(airflow: AirflowApi, *, paused: bool) -> None:
    """Pause the Dag of the stream, or unpause it."""
    answer = airflow._http.patch("/api/v2/dags/sales.enrich", json={"is_paused": paused})  # noqa: SLF001
    answer.raise_for_status()


def test_a_second_run_of_the_generator_replaces_the_first_one(prepared: Settings, airflow: AirflowApi) -> None:
    """A run with other parameters replaces the generator, one with the same starts nothing; a stop flushes."""
    first = airflow.trigger("deploy_generator", {"rate": 200, "duration": 3000})
    wait(lambda: None if producers(prepared, "200") else "not yet", "the first producer")
    assert [secrets_in(each, prepared) for each in producers(prepared, "200")] == [set()]
    same = run_to_its_end(airflow, "deploy_generator", {"rate": 200, "duration": 3000})
    assert "runs already, since" in airflow.log(same, "generate")
    second = airflow.trigger("deploy_generator", {"rate": 300, "duration": 3000})
    wait(lambda: None if producers(prepared, "300") else "not yet", "the second producer")
    assert producers(prepared, "200") == []
    wait(lambda: airflow.run("deploy_generator", first).unfinished(), "the first run")
    assert airflow.run("deploy_generator", first).state == "success"
    assert run_to_its_end(airflow, "stop_generator").state == "success"
    assert processes(prepared, "generator run") == []
    wait(lambda: airflow.run("deploy_generator", second).unfinished(), "the second run")
    assert airflow.run("deploy_generator", second).state == "success"
    log = (prepared.state / "logs" / "generator-sales.log").read_text()
    assert re.search(r"acknowledged (\d+) of \1 events", log)


def test_the_last_of_many_starts_and_stops_counts(prepared: Settings, airflow: AirflowApi) -> None:
    """Starts with other rates and stops are triggered at the same moment: only what was asked for last is done."""
    runs = []

    def ask(rate: int | None) -> None:
        if rate is None:
            runs.append(("stop_generator", airflow.trigger("stop_generator")))
        else:
            runs.append(("deploy_generator", airflow.trigger("deploy_generator", {"rate": rate, "duration": 3000})))

    def settled() -> None:
        *others, newest = runs
        wait(lambda: next(filter(None, (airflow.run(*run).unfinished() for run in others)), None), "the other runs")
        wait(lambda: None if airflow.run(*newest).unfinished() in {None, "generate"} else "not yet", "the newest run")

    for rate in (201, 202, None, 203):
        ask(rate)
    settled()
    wait(lambda: None if producers(prepared, "203") else "not yet", "the newest generator")
    assert len(processes(prepared, "generator run")) == 2, "one generator and its keeper"
    wish = read_wish(login("loader", prepared), "sales", "generator")
    assert wish
    assert wish.options["rate"] == "203"
    for rate in (204, None):
        ask(rate)
    settled()
    wait(lambda: airflow.run(*runs[-1]).unfinished(), "the stop")
    assert airflow.run(*runs[-1]).state == "success"
    assert processes(prepared, "generator run") == []


def test_a_stop_after_a_start_that_waits_is_the_newest(prepared: Settings, airflow: AirflowApi, stream: str) -> None:
    """The driver hangs, and an operator stops, starts and stops it: when it goes on, it ends and nothing starts."""
    before = started(prepared)
    hanging = processes(prepared, "enrich_stream.py")
    for each in hanging:
        each.suspend()
    runs = [(dag, airflow.trigger(dag)) for dag in ("sales.stop", "sales.enrich", "sales.stop")]
    loader = login("loader", prepared)
    asked = [airflow.triggered_at(*run) for run in runs]
    wait(lambda: None if asked_at(loader) == asked[-1] else "not yet", "the last stop to be wished")
    for each in hanging:
        with suppress(psutil.NoSuchProcess):
            each.resume()
    wait(lambda: next(filter(None, (airflow.run(*run).unfinished() for run in runs)), None), "all runs")
    assert airflow.run(*runs[-1]).state == "success"
    assert processes(prepared, "enrich_stream.py") == []
    assert started(prepared) == before
    wait(lambda: airflow.run("sales.enrich", stream).unfinished(), "the watching run")


def started(running: Settings) -> int:
    """Return how often the application has been started."""
    with connect(login("reader", running)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM program_start WHERE program = 'enrich_stream'")
        return int(cursor.fetchall()[0][0])


def asked_at(loader: Login) -> datetime | None:
    """Return when the newest wish for the stream was asked for."""
    wish = read_wish(loader, "sales", "enrich_stream")
    return wish.asked_at if wish else None


def producers(running: Settings, rate: str) -> list[psutil.Process]:
    """Return the generators that run at this rate, without their keepers."""
    found = []
    for each in processes(running, "generator run"):
        with suppress(psutil.NoSuchProcess):  # it has ended since
            words = each.cmdline()
            if "spark_apps.keep_program" not in words and f"--rate {rate}" in " ".join(words):
                found.append(each)
    return found


def test_a_run_that_is_under_way_is_not_started_again(prepared: Settings, airflow: AirflowApi, stream: str) -> None:
    """A second demo starts no second stream, and a second `make demo` follows the demo that runs already."""
    first = airflow.trigger("demo", {"products": 2000, "rate": 400, "duration": 10})
    lines: list[str] = []
    run_dag(airflow, prepared, lines.append)
    assert airflow.run("demo", first).state == "success"
    assert any(first in line for line in lines)
    assert len(drivers(prepared)) == 1
    assert airflow.run("sales.enrich", stream).unfinished()
