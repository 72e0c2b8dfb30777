"""Tasks that run by themselves are not red on a system that nobody has prepared or started."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException

from foundation.connections import connect, login
from plugins.one_line import OneLineExit
from plugins.operators.announce import EVER, landed
from plugins.operators.needed import if_stream_is_wanted
from plugins.operators.quality import CheckQualityOperator
from plugins.operators.watch import WatchStreamOperator
from spark_apps.running.wish import wish_running, wish_stopped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from foundation.settings import Settings

pytestmark = pytest.mark.integration


def context(run_type: str) -> Any:  # noqa: ANN401  # as much of Airflow's context as is used
    """Return the context of a task in a run of this type."""
    dag = SimpleNamespace(is_paused=False)
    return {"dag_run": SimpleNamespace(run_type=run_type), "ti": SimpleNamespace(get_dag=lambda _dag: dag)}


def connections(connect_to: Callable[..., None], running: Settings, **fields: object) -> None:
    """Define the connections of all accounts, with these fields instead of the usual ones."""
    for account in ("loader", "checker", "reader"):
        usual = {"login": account, "password": running.secret(f"{account}_password"), "schema": running.database}
        where = {"host": running.mariadb_host, "port": running.mariadb_port}
        connect_to(f"warehouse_{account}", conn_type="mysql", **where, **{**usual, **fields})
    connect_to("kafka_default", conn_type="kafka", extra={"bootstrap.servers": running.kafka_bootstrap})


@pytest.fixture
def unprepared(running: Settings, connect_to: Callable[..., None]) -> Iterator[Settings]:
    """Make connections to a database without tables, in which only the checker has rights, as after the first start."""
    with connect(login("root", running)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE nothing_yet")
        for account in ("checker", "reader"):
            cursor.execute(f"GRANT SELECT ON nothing_yet.* TO {account}@'%'")
        connections(connect_to, running.model_copy(update={"database": "nothing_yet"}))
        yield running
        cursor.execute("DROP DATABASE nothing_yet")
        for account in ("checker", "reader"):
            cursor.execute(f"REVOKE SELECT ON nothing_yet.* FROM {account}@'%'")


def test_without_tables_nothing_is_red(unprepared: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    """Without tables the watch is green, and a scheduled refresh and a check are skipped; each says what to do."""
    WatchStreamOperator(task_id="watch", pipeline="sales").execute(context("scheduled"))
    with pytest.raises(AirflowSkipException, match=r"there are no tables yet. The Dag sales.prepare creates them"):
        if_stream_is_wanted("sales")(context("scheduled"))
    check = CheckQualityOperator(task_id="check", pipeline="sales")
    for run_type in ("asset_triggered", "manual"):
        with pytest.raises(AirflowSkipException, match=r"table sales_enriched does not exist yet. Dag sales.prepare"):
            check.execute(context(run_type))
    nowhere = login("reader", unprepared.model_copy(update={"database": "nothing_yet"}))
    assert landed(nowhere, "sales", EVER) == (0, EVER)
    assert "no tables yet, so nothing is wanted" in capsys.readouterr().out


def test_a_scheduled_refresh_needs_a_wanted_stream(migrated: Settings, connect_to: Callable[..., None]) -> None:
    """A scheduled refresh is skipped while the stream is stopped, and works while it is wanted; a manual one works."""
    connections(connect_to, migrated)
    loader = login("loader", migrated)
    wish_stopped(loader, "seldom", "enrich_stream", by="admin")
    with pytest.raises(AirflowSkipException, match=r"the stream of pipeline 'seldom' is not wanted. The Dag seldom"):
        if_stream_is_wanted("seldom")(context("scheduled"))
    if_stream_is_wanted("seldom")(context("manual"))
    wish_running(loader, "seldom", "enrich_stream", by="admin")
    if_stream_is_wanted("seldom")(context("scheduled"))


def test_a_check_that_an_asset_triggers_waits_for_rows(migrated: Settings, connect_to: Callable[..., None]) -> None:
    """A check of an empty table is skipped if an asset has triggered it, because the first rows come later."""
    connections(connect_to, migrated)
    with connect(login("owner", migrated)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE empty_enriched (id INT)")
    try:
        with pytest.raises(AirflowSkipException, match="table empty_enriched has no row yet"):
            CheckQualityOperator(task_id="check", pipeline="empty").execute(context("asset_triggered"))
    finally:
        with connect(login("owner", migrated)) as connection, connection.cursor() as cursor:
            cursor.execute("DROP TABLE empty_enriched")


def test_a_wrong_password_is_red(running: Settings, connect_to: Callable[..., None]) -> None:
    """A warehouse that refuses the login is not taken for one without tables: the tasks fail with one line."""
    connections(connect_to, running, password="wrong")  # noqa: S106  # of this test only
    with pytest.raises(OneLineExit, match="Access denied"):
        WatchStreamOperator(task_id="watch", pipeline="sales").execute(context("scheduled"))
    with pytest.raises(OneLineExit, match="Access denied"):
        if_stream_is_wanted("sales")(context("scheduled"))
