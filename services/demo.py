"""`make demo`: start everything, run the Dag `demo`, print where to look."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import httpx

from foundation.connections import connect, login
from foundation.errors import UnfitError
from services import stack
from services.airflow import ADMIN, VIEWER
from services.airflow_api import AirflowApi
from services.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from foundation.settings import Settings

DAG = "demo"
NEEDED = {DAG, "sales.enrich"}  # Airflow reads dags/demo.py and dags/pipelines.py one after the other
DAG_SECONDS = 60.0
RUN_SECONDS = 600.0


def demo(report: Callable[[str], None]) -> None:
    """Start everything, run the demo and print where to look."""
    report("Starting the services")
    config = stack.up(report)
    with AirflowApi(config) as api:
        found = retried(lambda: missing_dag(api))
        wait_until(found, what="Airflow to read the Dags", seconds=DAG_SECONDS, report=report)
        report("Running the Dag `demo`")
        run_dag(api, config, report)
    report(where_to_look(config))


def run_dag(
    api: AirflowApi, config: Settings, report: Callable[[str], None], params: dict[str, object] | None = None
) -> None:
    """Run the Dag to its end and report each task when it is done."""
    run_id = start_run(api, report, params)
    shown: set[str] = set()

    def unfinished() -> str | None:
        run = api.run(DAG, run_id)
        for task in [name for name, state in run.tasks.items() if state == "success" and name not in shown]:
            shown.add(task)
            report(f"  {task} is done")
        return run.unfinished()

    took = wait_until(retried(unfinished), what=f"Dag {DAG}", seconds=RUN_SECONDS, pause=1.0, report=report)
    failed = api.run(DAG, run_id).failed_tasks()
    if failed:
        raise UnfitError(f"Dag {DAG} failed at {', '.join(failed)}", f"See why: {config.airflow_api}/dags/{DAG}")
    report(f"  the demo took {took:.0f} s")


def start_run(api: AirflowApi, report: Callable[[str], None], params: dict[str, object] | None) -> str:
    """Start a run of the Dag unless one is active, and return the id of the active run."""
    run_id = f"make__{uuid4()}"  # chosen here, so that a retried request starts no second run

    def started() -> None:
        nonlocal run_id
        if active := api.runs(DAG, "queued", "running"):
            if run_id not in active:
                run_id = active[0]
                report(f"  a run is already active: following {run_id}")
        else:
            api.trigger(DAG, params, run_id)

    wait_until(retried(started), what=f"Airflow to start Dag {DAG}", seconds=DAG_SECONDS, report=report)
    return run_id


def retried(check: Callable[[], str | None]) -> Callable[[], str | None]:
    """Wrap a check for `wait_until`: if Airflow does not answer, return an obstacle instead of raising an error."""

    def ask() -> str | None:
        try:
            return check()
        except httpx.TransportError as error:
            return f"no answer from Airflow yet ({error})"

    return ask


def missing_dag(api: AirflowApi) -> str | None:
    """Return None when Airflow can run the demo's Dag, else why not."""
    errors = api.import_errors()
    return None if api.dags() >= NEEDED else (errors[0] if errors else "not read yet")


def where_to_look(config: Settings) -> str:
    """Return the text that ends the demo: numbers from the warehouse, and what to open or type next."""
    with connect(login("reader", config)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*), COUNT(DISTINCT product_key) FROM sales_enriched")
        ((rows, products),) = cursor.fetchall()
    # The query below is an example for the reader; nothing runs it.
    return f"""
{rows:,} enriched sales of {products:,} products are in the warehouse, and more arrive every second.

  Airflow       {config.airflow_api}   users {ADMIN} and {VIEWER}, passwords: make password
  The page      {config.airflow_api}/plugin/freshet   (what runs, how far behind, plots, buttons)
  Warehouse     make sql               (analysts' SQL client; try: SELECT * FROM sales ORDER BY sold_at DESC LIMIT 5;)
  Topics        sales and sales.enriched on {config.kafka_bootstrap}
  Messages      make topic             (the messages of sales.enriched as they arrive)
  State         make status, make logs
  Stop          make down
"""  # noqa: S608
