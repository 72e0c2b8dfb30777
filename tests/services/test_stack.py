"""The services run, come back when killed, name what stands in their way, and let in only whom they should."""

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


def pids(chosen: Settings) -> dict[str, int]:
    """The process of each program that the supervisor keeps running."""
    groups = ("kafka", "mariadb", "airflow")
    listed = [program for group in groups for program in stack.programs(chosen, group)]
    assert len(listed) == 6
    return {program["name"]: program["pid"] for program in listed if program["statename"] == "RUNNING"}


def test_status_says_healthy_of_each_service(running: Settings) -> None:
    """And the command's exit code says it too."""
    command = [sys.executable, "-m", "services", "status"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert [line.split() for line in answer.stdout.splitlines()] == [[name, "healthy"] for name in SERVICES]
    assert stack.is_running(running)


def test_every_killed_program_comes_back(running: Settings) -> None:
    """Kill -9 each one that the supervisor watches, then wait for all in other processes, and healthy."""
    before = pids(running)
    for pid in before.values():
        psutil.Process(pid).kill()

    def dead() -> str | None:
        now = pids(running)
        return ", ".join(name for name in before if now.get(name) in (None, before[name])) or None

    wait_until(dead, what="other processes", seconds=BACK_SECONDS)
    for service, obstacle in health.CHECKS.items():
        wait_until(lambda check=obstacle: check(running), what=service, seconds=BACK_SECONDS)  # type: ignore[misc]


def test_status_says_why_a_service_is_not_healthy(running: Settings) -> None:
    """Asked of a port where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        elsewhere = running.model_copy(
            update={"kafka_port": free.getsockname()[1], "mariadb_port": free.getsockname()[1]}
        )
        assert "no broker answers at 127.0.0.1:" in str(health.kafka(elsewhere))
        assert "Connection refused" in str(health.mariadb(elsewhere))


def test_a_server_that_is_stuck_is_not_waited_for(running: Settings) -> None:
    """It takes connections and says nothing."""
    server = psutil.Process(pids(running)["mariadb"])
    server.suspend()
    try:
        assert "timed out" in str(health.mariadb(running))
    finally:
        server.resume()


def test_a_port_with_another_program_behind_it_is_not_healthy(running: Settings) -> None:
    """MariaDB is asked for a page."""
    obstacle = health.airflow(running.model_copy(update={"airflow_port": running.mariadb_port}))
    assert "speaks no HTTP" in str(obstacle)


def test_everything_listens_on_this_machine_only(running: Settings) -> None:
    """No port is open to the network."""
    ours = {process.pid for process in stack.marked(running)}
    listening = [
        str(getattr(connection.laddr, "ip", "")).removeprefix("::ffff:")
        for connection in psutil.net_connections("inet")
        if connection.pid in ours and connection.status == psutil.CONN_LISTEN
    ]
    assert len(listening) >= len(PORTS) - 1  # the counters are shown while an application runs
    assert set(listening) == {"127.0.0.1"}


def test_no_secret_is_on_a_command_line_or_in_a_log(running: Settings) -> None:
    """Every process of the stack, every log that it wrote."""
    secrets = [getattr(running, name).get_secret_value() for name in SECRET_NAMES]
    lines = [each.command_line for each in stack.started() if each.state == running.state]
    folders = (running.state / "logs", running.state / "airflow" / "logs")
    logs = [file.read_text(errors="replace") for folder in folders for file in folder.rglob("*.log")]
    assert len(lines) > len(health.CHECKS)
    assert len(logs) > len(health.CHECKS)
    assert not [secret for secret in secrets for text in (*lines, *logs) if secret in text]


@pytest.mark.parametrize(("user", "password"), [("root", ""), ("", ""), ("reader", ""), ("reader", "guess")])
def test_nobody_comes_in_without_the_right_password(running: Settings, user: str, password: str) -> None:
    """Neither root nor an anonymous user nor an account by its name alone."""
    who = Login(running.mariadb_host, running.mariadb_port, user, password, None)
    with pytest.raises(pymysql.OperationalError, match="Access denied"), connect(who):
        pytest.fail("the server let it in")


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
def test_an_account_has_no_more_rights_than_its_job_needs(running: Settings, account: Account, statement: str) -> None:
    """What it has no business with is denied."""
    with (
        connect(login(account, running)) as connection,
        connection.cursor() as cursor,
        pytest.raises(pymysql.OperationalError, match="denied"),
    ):
        cursor.execute(statement)


def test_airflow_tells_nobody_its_configuration(running: Settings) -> None:
    """Not even its admin: the keys are in there."""
    login_page = {"username": ADMIN, "password": running.airflow_password.get_secret_value()}
    token = httpx.post(f"{running.airflow_api}/auth/token", json=login_page).json()["access_token"]
    headers = {"Authorization": f"Bearer {token}"}
    answer = httpx.get(f"{running.airflow_api}/api/v2/config", headers=headers)
    assert answer.status_code == 403
