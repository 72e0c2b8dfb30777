"""The services run, restart when killed, report why they are not healthy, and refuse unknown users."""

from __future__ import annotations

import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx
import psutil
import pymysql
import pytest

from foundation.connections import Account, Login, connect, login
from foundation.settings import ROOT, SECRET_NAMES
from services import health, stack
from services.airflow import ADMIN
from services.ports import PORTS
from services.waiting import wait_until

if TYPE_CHECKING:
    from foundation.settings import Settings

pytestmark = pytest.mark.integration
BACK_SECONDS = 90.0
SERVICES = ("supervisor", *health.CHECKS)


def pids(config: Settings) -> dict[str, int]:
    """Return the process id of each running program of the supervisor."""
    groups = ("kafka", "mariadb", "airflow")
    listed = [program for group in groups for program in stack.programs(config, group)]
    assert len(listed) == 6
    return {program["name"]: program["pid"] for program in listed if program["statename"] == "RUNNING"}


def test_status_reports_each_service_as_healthy(running: Settings) -> None:
    """`status` reports each service as healthy, with exit code 0."""
    command = [sys.executable, "-m", "services", "status"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    services = answer.stdout.splitlines()[: len(SERVICES)]  # the pipelines follow
    assert [line.split() for line in services] == [[name, "healthy"] for name in SERVICES]
    assert stack.is_running(running)


def test_every_killed_program_is_restarted(running: Settings) -> None:
    """After kill -9 of each program of the supervisor, all run in new processes and are healthy."""
    before = pids(running)
    for pid in before.values():
        psutil.Process(pid).kill()

    def dead() -> str | None:
        now = pids(running)
        return ", ".join(name for name in before if now.get(name) in (None, before[name])) or None

    wait_until(dead, what="new processes", seconds=BACK_SECONDS)
    for service, obstacle in health.CHECKS.items():
        wait_until(lambda check=obstacle: check(running), what=service, seconds=BACK_SECONDS)  # type: ignore[misc]


def test_status_says_why_a_service_is_not_healthy(running: Settings) -> None:
    """`status` reports the reason when no server listens on a service's port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        elsewhere = running.model_copy(
            update={"kafka_port": free.getsockname()[1], "mariadb_port": free.getsockname()[1]}
        )
        assert "no broker answers at 127.0.0.1:" in str(health.kafka(elsewhere))
        assert "Connection refused" in str(health.mariadb(elsewhere))


def test_the_check_of_a_frozen_server_times_out(running: Settings) -> None:
    """The check of a server that accepts connections but does not answer fails after its timeout."""
    server = psutil.Process(pids(running)["mariadb"])
    server.suspend()
    try:
        assert "timed out" in str(health.mariadb(running))
    finally:
        server.resume()


def test_another_program_on_the_port_is_not_healthy(running: Settings) -> None:
    """Airflow's check fails if another program, here MariaDB, answers on its port."""
    obstacle = health.airflow(running.model_copy(update={"airflow_port": running.mariadb_port}))
    assert "does not speak HTTP" in str(obstacle)


def test_everything_listens_on_this_machine_only(running: Settings) -> None:
    """Every port of the stack is open on this machine only."""
    ours = {process.pid for process in stack.marked(running)}
    listening = [
        str(getattr(connection.laddr, "ip", "")).removeprefix("::ffff:")
        for connection in psutil.net_connections("inet")
        if connection.pid in ours and connection.status == psutil.CONN_LISTEN
    ]
    assert len(listening) >= len(PORTS) - 1  # the metrics port is open only while an application runs
    assert set(listening) == {"127.0.0.1"}


def test_no_secret_is_on_a_command_line_or_in_a_log(running: Settings) -> None:
    """No command line and no log of the stack contains a secret."""
    secrets = [getattr(running, name).get_secret_value() for name in SECRET_NAMES]
    lines = [each.command_line for each in stack.started() if each.state == running.state]
    folders = (running.state / "logs", running.state / "airflow" / "logs")
    logs = [file.read_text(errors="replace") for folder in folders for file in folder.rglob("*.log")]
    assert len(lines) > len(health.CHECKS)
    assert len(logs) > len(health.CHECKS)
    assert not [secret for secret in secrets for text in (*lines, *logs) if secret in text]


@pytest.mark.parametrize(("user", "password"), [("root", ""), ("", ""), ("reader", ""), ("reader", "guess")])
def test_a_login_without_the_right_password_is_refused(running: Settings, user: str, password: str) -> None:
    """The server refuses root, an anonymous user, and an account with a wrong or no password."""
    who = Login(running.mariadb_host, running.mariadb_port, user, password, None)
    with pytest.raises(pymysql.OperationalError, match="Access denied"), connect(who):
        pytest.fail("the server accepted the login")


@pytest.mark.usefixtures("migrated")
@pytest.mark.parametrize(
    ("account", "statement"),
    [
        ("reader", "INSERT INTO product_frequency (product_id, access_frequency) VALUES (1, 1)"),
        ("checker", "UPDATE sales_enriched SET quantity = 1"),
        ("loader", "UPDATE product SET price_cents = 1"),
        ("loader", "DELETE FROM sales_enriched"),
        ("loader", "UPDATE sales_enriched SET quantity = 1"),
        ("loader", "DROP TABLE sales_enriched"),
        ("owner", "SELECT * FROM mysql.global_priv"),
        ("owner", "CREATE USER friend@'%'"),
    ],
)
def test_an_account_has_only_the_rights_that_it_needs(running: Settings, account: Account, statement: str) -> None:
    """The server denies an account every statement that it does not need."""
    with (
        connect(login(account, running)) as connection,
        connection.cursor() as cursor,
        pytest.raises(pymysql.OperationalError, match="denied"),
    ):
        cursor.execute(statement)


def test_airflow_shows_its_configuration_to_nobody(running: Settings) -> None:
    """Airflow shows its configuration to no user, not even its admin, because it contains keys."""
    login_page = {"username": ADMIN, "password": running.airflow_password.get_secret_value()}
    token = httpx.post(f"{running.airflow_api}/auth/token", json=login_page).json()["access_token"]
    headers = {"Authorization": f"Bearer {token}"}
    answer = httpx.get(f"{running.airflow_api}/api/v2/config", headers=headers)
    assert answer.status_code == 403
