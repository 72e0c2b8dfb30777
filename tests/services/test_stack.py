"""The services run, come back when killed, name what stands in their way, and let in only whom they should."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import psutil
import pymysql
import pytest

from services import health, stack
from services.preflight import Unfit
from services.settings import ROOT, SECRET_NAMES
from services.waiting import wait_until
from services.warehouse import Account, Login, connect, login

if TYPE_CHECKING:
    from services.settings import Settings

pytestmark = pytest.mark.integration
BACK_SECONDS = 90.0


def of_stack(chosen: Settings, word: str) -> list[psutil.Process]:
    """The stack's processes whose command line has a word in it."""
    return [process for process in stack.marked(chosen) if word in " ".join(process.cmdline())]


def test_status_says_healthy_of_each_service(running: Settings) -> None:
    """And the command's exit code says it too."""
    command = [sys.executable, "-m", "services", "status"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert [line.split() for line in answer.stdout.splitlines()] == [[name, "healthy"] for name in health.CHECKS]
    assert stack.is_running(running)


@pytest.mark.parametrize(("service", "word"), [("kafka", "kafka.Kafka"), ("mariadb", "mariadbd")])
def test_a_killed_service_comes_back(running: Settings, service: str, word: str) -> None:
    """Kill -9, then wait for the same service in another process."""
    (before,) = of_stack(running, word)
    before.kill()
    psutil.wait_procs([before], BACK_SECONDS)
    wait_until(lambda: health.CHECKS[service](running), what=service, seconds=BACK_SECONDS)
    (after,) = of_stack(running, word)
    assert after.pid != before.pid


def test_status_says_why_a_service_is_not_healthy(running: Settings) -> None:
    """Asked of a port where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        elsewhere = running.model_copy(
            update={"kafka_port": free.getsockname()[1], "mariadb_port": free.getsockname()[1]}
        )
        assert "no broker answers at 127.0.0.1:" in str(health.kafka(elsewhere))
        assert "Connection refused" in str(health.mariadb(elsewhere))


def test_a_port_in_use_is_named_with_its_program_and_the_setting(running: Settings) -> None:
    """The stack's own broker stands in the way of a second one."""
    with pytest.raises(Unfit) as caught:
        stack.check_ports(running)
    message = str(caught.value)
    assert f"port {running.kafka_port} (FRESHET_KAFKA_PORT) is taken by java (process " in message
    assert re.search(r"choose another port: FRESHET_KAFKA_PORT=\d+ make demo", message)


def test_everything_listens_on_this_machine_only(running: Settings) -> None:
    """No port is open to the network."""
    ours = {process.pid for process in stack.marked(running)}
    listening = [
        str(getattr(connection.laddr, "ip", "")).removeprefix("::ffff:")
        for connection in psutil.net_connections("inet")
        if connection.pid in ours and connection.status == psutil.CONN_LISTEN
    ]
    assert len(listening) >= len(stack.PORTS)
    assert set(listening) == {"127.0.0.1"}


def test_no_secret_is_on_a_command_line_or_in_a_log(running: Settings) -> None:
    """Every process of the stack, every log that it wrote."""
    secrets = [getattr(running, name).get_secret_value() for name in SECRET_NAMES]
    lines = [" ".join(process.cmdline()) for process in stack.marked(running)]
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


def test_two_services_on_one_port_are_named(running: Settings) -> None:
    """Both settings, and what to do."""
    same = running.model_copy(update={"airflow_port": running.mariadb_port})
    with pytest.raises(Unfit, match=r"FRESHET_MARIADB_PORT and FRESHET_AIRFLOW_PORT are both \d+\. Give each"):
        stack.check_ports(same)


def test_what_nobody_watches_any_more_is_ended(running: Settings) -> None:
    """A process with a stack's mark, as one that outlived its supervisor; others are spared."""
    other = running.model_copy(update={"state": running.state / "other"})
    left = subprocess.Popen(["sleep", "600"], env={stack.MARK: str(other.state)})
    spared = subprocess.Popen(["sleep", "601"], env={stack.MARK: str(other.state)})
    told: list[str] = []
    stack.sweep(other, told.append, spare=("sleep 601",))
    left.wait(BACK_SECONDS)
    assert spared.poll() is None
    assert told == ["  ending 1 processes that were left: sleep"]
    spared.kill()
    spared.wait()


def test_a_service_that_was_stopped_is_started_by_up(running: Settings) -> None:
    """As one that failed so often that the supervisor gave up."""
    with stack.supervisor(running) as control:
        control.stopProcess("kafka")
    stack.start_programs(running, "kafka")
    wait_until(lambda: health.kafka(running), what="kafka", seconds=BACK_SECONDS)
