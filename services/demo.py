"""`make demo`: start everything, run the Dag `demo`, and say where to look."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import httpx

from foundation.connections import connect, login
from foundation.errors import UnfitError
from services import stack
from services.airflow import ADMIN
from services.airflow_api import AirflowApi
from services.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from foundation.settings import Settings

DAG = "demo"
DAG_SECONDS = 60.0
RUN_SECONDS = 600.0


def demo(report: Callable[[str], None]) -> None:
    """Run the story and print where to look."""
    report("Starting the services")
    chosen = stack.up(report)
    with AirflowApi(chosen) as api:
        found = patient(lambda: missing_dag(api))
        wait_until(found, what="Airflow to read the Dags", seconds=DAG_SECONDS, report=report)
        report("Running the Dag `demo`")
        tell(api, chosen, report)
    report(where_to_look(chosen))


def tell(
    api: AirflowApi, chosen: Settings, report: Callable[[str], None], params: dict[str, object] | None = None
) -> None:
    """Run the Dag and report each of its tasks as it is done."""
    run_id = begin(api, report, params)
    shown: set[str] = set()

    def unfinished() -> str | None:
        run = api.run(DAG, run_id)
        for task in [name for name, state in run.tasks.items() if state == "success" and name not in shown]:
            shown.add(task)
            report(f"  {task} is done")
        return run.unfinished()

    took = wait_until(patient(unfinished), what=f"Dag {DAG}", seconds=RUN_SECONDS, pause=1.0, report=report)
    failed = api.run(DAG, run_id).failed_tasks()
    if failed:
        raise UnfitError(f"the Dag demo failed at {', '.join(failed)}", f"See why: {chosen.airflow_api}/dags/demo")
    report(f"  the story took {took:.0f} s")


def begin(api: AirflowApi, report: Callable[[str], None], params: dict[str, object] | None) -> str:
    """Start the story, unless it is being told; return its run's id."""
    run_id = f"make__{uuid4()}"  # asked a second time for the same, Airflow starts nothing twice

    def begun() -> None:
        nonlocal run_id
        if under_way := api.runs(DAG, "queued", "running"):
            if run_id not in under_way:
                run_id = under_way[0]
                report(f"  it is being told already: following {run_id}")
        else:
            api.trigger(DAG, params, run_id)

    wait_until(patient(begun), what=f"Airflow to start Dag {DAG}", seconds=DAG_SECONDS, report=report)
    return run_id


def patient(asked: Callable[[], str | None]) -> Callable[[], str | None]:
    """Let a question to Airflow that has no answer yet be asked again."""

    def ask() -> str | None:
        try:
            return asked()
        except httpx.TransportError as silence:
            return f"no answer from Airflow yet ({silence})"

    return ask


def missing_dag(api: AirflowApi) -> str | None:
    """Return None when the demo's Dag can run, else why not."""
    errors = api.import_errors()
    return None if DAG in api.dags() else (errors[0] if errors else "not read yet")


def where_to_look(chosen: Settings) -> str:
    """Say what there is to see, with numbers from the warehouse."""
    with connect(login("reader", chosen)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*), COUNT(DISTINCT product_key) FROM sales_enriched")
        ((rows, products),) = cursor.fetchall()
    # The example query below is text for a person, not a statement that is run.
    return f"""
{rows:,} sales of {products:,} products are enriched in the warehouse, and more come in every second.

  Airflow       {chosen.airflow_api}   user {ADMIN}, password: make password
  Warehouse     make sql               (an analyst's prompt; try: SELECT * FROM sales ORDER BY sold_at DESC LIMIT 5;)
  Topics        sales and sales.enriched on {chosen.kafka_bootstrap}
  Watch it      make topic             (the enriched topic as it grows)
  State         make status, make logs
  Stop          make down
"""  # noqa: S608
