"""Tests of the Dags of the demo, run through Airflow's API on real services, and of the rows they write."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from foundation.connections import connect, login
from quality.results import record
from services.demo import missing_dag, run_dag
from services.waiting import wait_until
from spark_apps.running.lease import is_held
from tests.topics import read_topic

if TYPE_CHECKING:
    from foundation.settings import Settings
    from services.airflow_api import AirflowApi, Run

pytestmark = pytest.mark.integration
PARAMS = {"products": 2000, "rate": 400, "duration": 10}
RUN_SECONDS = 300.0


def finished(airflow: AirflowApi, dag: str, run_id: str) -> Run:
    """Wait until a run has ended, and return it."""
    wait_until(lambda: airflow.run(dag, run_id).unfinished(), what=f"Dag {dag}", seconds=RUN_SECONDS)
    return airflow.run(dag, run_id)


def ask(airflow: AirflowApi, path: str, **params: str | int) -> dict[str, Any]:
    """Ask Airflow's API."""
    answer = airflow._http.get(f"/api/v2/{path}", params=params)  # noqa: SLF001  # the client has what the system needs
    answer.raise_for_status()
    return dict(answer.json())


def rows(running: Settings, query: str) -> list[tuple[object, ...]]:
    """Query the warehouse with the account of an analyst."""
    with connect(login("reader", running)) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


@pytest.fixture(scope="module")
def shown(running: Settings, airflow: AirflowApi) -> Settings:
    """Run the demo until its generator has ended and the warehouse has all of its events."""
    wait_until(lambda: missing_dag(airflow), what="the Dags", seconds=RUN_SECONDS)
    assert airflow.import_errors() == []
    lines: list[str] = []
    run_dag(airflow, running, lines.append, dict(PARAMS))
    assert "  sales.check is done" in lines
    (generator,) = airflow.runs("deploy_generator", "running") or airflow.runs("deploy_generator", "success")
    assert finished(airflow, "deploy_generator", generator).state == "success"
    sent = len(read_topic(running.kafka_bootstrap, "sales"))

    def missing() -> str | None:
        landed = rows(running, "SELECT COUNT(*) FROM sales_enriched")[0][0]
        return None if landed == sent else f"{landed} of {sent} events have landed"

    wait_until(missing, what="all events to land", seconds=RUN_SECONDS)
    return running


def test_every_event_is_enriched_as_a_plain_lookup_says(shown: Settings) -> None:
    """Each event of the topic has one row, at the event's position, with the values of its product."""
    products = {
        product_id: (product_key, name, price)
        for product_id, product_key, name, price in rows(
            shown, "SELECT product_id, product_key, name, price_cents FROM product"
        )
    }
    expected = set()
    for (partition, offset), value in read_topic(shown.kafka_bootstrap, "sales").items():
        event = json.loads(value)
        key, name, price = products[event["product_id"]]
        total = event["quantity"] * price
        expected.add((partition, offset, event["event_id"], key, name, event["quantity"], total))
    found = rows(
        shown,
        """SELECT kafka_partition, kafka_offset, e.event_id, product_key, name, e.quantity, CAST(total * 100 AS INT)
        FROM sales_enriched AS e JOIN sales USING (event_id, product_key)""",
    )
    assert len(found) == len(expected) > PARAMS["rate"]
    assert {tuple(map(str, row)) for row in found} == {tuple(map(str, row)) for row in expected}


def test_the_enriched_topic_carries_the_same_rows(shown: Settings) -> None:
    """A consumer of the enriched topic gets every event, with the key and price from the warehouse."""
    seen = {
        json.loads(value)["event_id"]: json.loads(value)
        for value in read_topic(shown.kafka_bootstrap, "sales.enriched").values()
    }
    wanted = rows(shown, "SELECT event_id, product_key, price_cents FROM sales_enriched")
    assert len(seen) == len(wanted)
    assert [(seen[str(i)]["product_key"], seen[str(i)]["price_cents"]) for i, _, _ in wanted] == [
        row[1:] for row in wanted
    ]


def test_the_master_data_is_published_in_the_order_of_the_estimate(shown: Settings) -> None:
    """The published master data begins with the most frequent product."""
    from semistream.relation import PageFile

    from spark_apps.master.snapshots import current

    snapshot = current(shown.folders.snapshots("sales"))
    assert snapshot
    relation = PageFile(snapshot.path)
    pages = (relation.read_page(page).rows["product_id"].to_pylist() for page in range(relation.pages))
    published = [key for page in pages for key in page]
    ranked = rows(shown, "SELECT product_id FROM product_frequency ORDER BY access_frequency DESC, product_id")
    assert len(published) == PARAMS["products"]
    assert published[: len(ranked)] == [row[0] for row in ranked]


def test_a_refresh_whose_check_fails_says_why_and_keeps_the_published_version(
    shown: Settings, airflow: AirflowApi
) -> None:
    """A refresh whose check finds too few rows fails with the reason; the published version stays in use."""
    from spark_apps.master.snapshots import current

    folder = shown.folders.snapshots("sales")
    before = current(folder)
    refused = finished(airflow, "sales.refresh", airflow.trigger("sales.refresh", {"least_share": 1.5}))
    assert refused.failed_tasks() == ["check"]
    assert refused.tasks["publish"] == "upstream_failed"
    said = airflow.log(refused, "check")
    assert "refused to publish, version 1 stays in use" in said
    assert "`product_by_rank_next`, which is there until the next run" in said
    assert re.search(r"expect_table_row_count_to_be_between \{'min_value': 3000(\.0)?\}: NOT met", said)
    assert current(folder) == before
    assert rows(shown, "SELECT failed FROM quality_check WHERE suite = 'product' ORDER BY id DESC LIMIT 1") == [(1,)]


def test_a_failed_check_turns_the_watch_red_until_a_newer_one_is_good(shown: Settings, airflow: AirflowApi) -> None:
    """After a failed check of the master data sales.watch is red with that line; after a good one it is green."""
    loader = login("loader", shown)
    record(loader, "sales", "product", 4, ["expect_column_values_to_be_unique {'column': 'product_id'}: NOT met"])
    red = finished(airflow, "sales.watch", airflow.trigger("sales.watch"))
    assert red.failed_tasks() == ["watch"]
    said = airflow.log(red, "watch")
    assert "the quality check of product failed at 20" in said
    assert "1 of 4 expectations are not met (expect_column_values_to_be_unique" in said
    record(loader, "sales", "product", 4, [])
    assert finished(airflow, "sales.watch", airflow.trigger("sales.watch")).state == "success"


def test_a_check_follows_a_new_snapshot(shown: Settings, airflow: AirflowApi) -> None:
    """The snapshot that the demo publishes triggers a quality check by its asset, which is not red without rows."""
    assert shown

    def missing() -> str | None:
        ended = [run for run in airflow.runs("sales.check", "success") if run.startswith("asset_triggered__")]
        return None if ended else "no run by an asset has succeeded"

    wait_until(missing, what="a quality check by an asset", seconds=RUN_SECONDS)
    kept = rows(shown, "SELECT failed FROM quality_check WHERE suite = 'sales_enriched'")
    assert kept
    assert set(kept) == {(0,)}


def test_new_rows_are_announced_once(shown: Settings, airflow: AirflowApi) -> None:
    """sales.announce makes events of the enriched rows' asset with their number; a run without new rows is skipped."""

    def missing() -> str | None:
        ((counted, landed),) = rows(
            shown, "SELECT (SELECT SUM(enriched) FROM batch_counters), (SELECT COUNT(*) FROM sales_enriched)"
        )
        return None if counted is not None and int(str(counted)) >= int(str(landed)) else f"{counted} of {landed}"

    wait_until(missing, what="the counters of all rows", seconds=RUN_SECONDS)
    finished(airflow, "sales.announce", airflow.trigger("sales.announce"))
    second = finished(airflow, "sales.announce", airflow.trigger("sales.announce"))
    assert (second.state, second.tasks["announce"]) == ("success", "skipped")
    assert "no new rows since 20" in airflow.log(second, "announce")
    (enriched,) = ask(airflow, "assets", name_pattern="enriched of sales")["assets"]
    events = ask(airflow, "assets/events", asset_id=enriched["id"], source_dag_id="sales.announce")["asset_events"]
    ((landed,),) = rows(shown, "SELECT COUNT(*) FROM sales_enriched")
    assert sum(event["extra"]["rows"] for event in events) >= int(str(landed))


def test_each_task_links_to_the_page(shown: Settings, airflow: AirflowApi) -> None:
    """Airflow's API has the address of the page as a link of a task, and the plugin was loaded without an error."""
    (run, *_) = airflow.runs("demo", "success")
    links = ask(airflow, f"dags/demo/dagRuns/{run}/taskInstances/sales.check/links")["extra_links"]
    assert links["Freshet"] == f"{shown.airflow_api}/plugin/freshet"
    assert ask(airflow, "plugins/importErrors")["import_errors"] == []


@pytest.mark.parametrize(
    ("dag", "conf", "says"),
    [
        ("deploy_generator", {"rate": 0}, "0 is less than the minimum of 1"),
        ("demo", {"products": 10**12}, "1000000000000 is greater than the maximum of 100000000"),
        ("sales.refresh", {"half_life": "soon"}, "'soon' is not of type 'number'"),
    ],
)
def test_a_parameter_out_of_bounds_is_refused(
    shown: Settings, airflow: AirflowApi, dag: str, conf: dict[str, object], says: str
) -> None:
    """Airflow's API answers 400 to a parameter beyond its bounds, with its name, its value and the rule."""
    assert shown
    with pytest.raises(httpx.HTTPStatusError) as refused:
        airflow.trigger(dag, conf)
    assert refused.value.response.status_code == 400
    detail = refused.value.response.json()["detail"]
    assert next(iter(conf)) in detail
    assert says in detail


def test_the_application_stops_when_it_is_asked_to(shown: Settings, airflow: AirflowApi) -> None:
    """After the Dag sales.stop, the run of sales.enrich ends with success within one batch."""
    (stream,) = airflow.runs("sales.enrich", "running")
    assert is_held(login("loader", shown), "sales")
    stopped = finished(airflow, "sales.stop", airflow.trigger("sales.stop"))
    assert stopped.state == "success"
    assert not is_held(login("loader", shown), "sales")
    ended = finished(airflow, "sales.enrich", stream)
    assert ended.state == "success"
    assert "stopped as asked" in airflow.log(ended, "enrich")


def test_the_password_of_the_warehouse_is_in_no_task_log(shown: Settings, airflow: AirflowApi) -> None:
    """The warehouse's password is neither in a task's log nor in what Airflow shows about a task."""
    secret = shown.loader_password.get_secret_value()
    files = list((shown.state / "airflow" / "logs").rglob("*.log"))
    assert files
    assert not [file for file in files if secret in file.read_text(errors="replace")]
    (stream,) = airflow.runs("sales.enrich", "success")
    assert secret not in json.dumps(airflow.task(airflow.run("sales.enrich", stream), "enrich"))


@pytest.mark.parametrize("path", ["/api/v2/dags", "/api/v2/connections", "/api/v2/dags/demo/dagRuns"])
def test_a_request_without_a_login_is_refused(shown: Settings, path: str) -> None:
    """Airflow answers a request without a login with status 401 on every path."""
    assert httpx.get(shown.airflow_api + path).status_code == 401
