"""The README's commands work, called by make as users do, while the services run."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
from kafka import KafkaProducer

from foundation.settings import PREFIX, ROOT
from services.ports import PORTS, free_ports
from services.secrets_file import ensure_secrets
from services.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from foundation.settings import Settings

pytestmark = pytest.mark.integration
SECONDS = 60.0


def make(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Run make as a user does, also when make runs the tests."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    options.setdefault("env", own)
    return subprocess.run(["make", *words], cwd=ROOT, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload,no-any-return]


def test_up_when_everything_runs_changes_nothing(running: Settings) -> None:
    """`make up` on a running stack reports each service as healthy and keeps the supervisor."""
    before = (running.state / "supervisord.pid").read_text()
    answer = make("up")
    assert answer.returncode == 0, answer.stderr
    assert [line.split()[0] for line in answer.stdout.splitlines()] == ["mariadb", "kafka", "airflow"]
    assert (running.state / "supervisord.pid").read_text() == before


def test_commands_know_the_settings_of_the_running_system(running: Settings) -> None:
    """Commands need only FRESHET_STATE to find the running stack; a start with another port is refused."""
    ports = {PREFIX + name.upper() for name in PORTS}
    environment = {name: value for name, value in os.environ.items() if name not in ports}
    assert make("status", env=environment).returncode == 0
    other = {**environment, "FRESHET_AIRFLOW_PORT": str(free_ports(1)[0])}
    answer = make("up", env=other)
    assert f"already runs, but not with FRESHET_AIRFLOW_PORT={other['FRESHET_AIRFLOW_PORT']}" in answer.stderr
    assert (running.state / "started.env").exists()


def test_variables_of_another_spark_and_of_a_proxy_are_ignored(running: Settings) -> None:
    """Variables that belong to another Spark or to a proxy do not affect the commands."""
    foreign = {"http_proxy": "http://127.0.0.1:9", "SPARK_HOME": "/nowhere", "PYSPARK_DRIVER_PYTHON": "jupyter"}
    assert make("status", env={**os.environ, **foreign}).returncode == 0
    shown = make("--eval=shown: ; @env", "shown", env={**os.environ, **foreign}).stdout
    assert "no_proxy=127.0.0.1,localhost" in shown
    assert "SPARK_HOME" not in shown
    assert "PYSPARK_DRIVER_PYTHON" not in shown
    assert running


def test_sql_is_an_analysts_prompt(migrated: Settings) -> None:
    """`make sql` reads the tables that analysts can read, and cannot write."""
    read = make("sql", input="SELECT COUNT(*) >= 0 AS there FROM sales")
    assert read.stdout.splitlines() == ["there", "1"]
    assert read.stderr == ""
    written = make("sql", input="DELETE FROM sales_enriched")
    assert "DELETE command denied to user 'reader'" in written.stderr
    assert migrated.database == "freshet"


def test_password_prints_airflows_logins(running: Settings) -> None:
    """`make password` prints the admin and the viewer of Airflow's page, each with the password."""
    admin, viewer = (running.secret(name) for name in ("airflow_password", "airflow_viewer_password"))
    assert make("password").stdout.splitlines() == [
        f"user admin, password {admin}",
        f"user viewer, password {viewer} (may look, and change nothing)",
    ]


def test_settings_prints_values_but_no_secret(running: Settings) -> None:
    """`make settings` prints name, value and description of each setting, and no secret."""
    printed = make("settings").stdout
    assert f"FRESHET_KAFKA_PORT                 {running.kafka_port}" in printed
    assert running.owner_password.get_secret_value() not in printed


@pytest.mark.usefixtures("topics")
def test_topic_prints_new_events_until_ctrl_c(running: Settings, tmp_path: Path) -> None:
    """`make topic` prints a message that is sent while it runs, until Ctrl-C."""
    printed = tmp_path / "printed"
    with printed.open("w") as output:
        watcher = subprocess.Popen(["make", "topic"], cwd=ROOT, stdout=output, start_new_session=True)
    producer = KafkaProducer(bootstrap_servers=running.kafka_bootstrap)

    def seen() -> str | None:
        producer.send("sales.enriched", b'{"hello":"there"}').get(SECONDS)
        return None if '{"hello":"there"}' in printed.read_text() else "not printed yet"

    wait_until(seen, what="the message", seconds=SECONDS)
    producer.close()
    os.killpg(watcher.pid, signal.SIGINT)
    watcher.wait(SECONDS)
    assert "Traceback" not in printed.read_text()


def test_topic_ends_quietly_when_its_reader_closes_the_pipe(topics: Settings) -> None:
    """`make topic | head -1` ends without an error."""
    producer = KafkaProducer(bootstrap_servers=topics.kafka_bootstrap)
    with subprocess.Popen(
        ["make", "topic"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as watcher:
        assert watcher.stdout is not None
        assert watcher.stderr is not None
        watcher.stdout.close()

        def ended() -> str | None:
            producer.send("sales.enriched", b"{}").get(SECONDS)
            return "still running" if watcher.poll() is None else None

        wait_until(ended, what="its end", seconds=SECONDS)
        assert watcher.stderr.read() == ""
    producer.close()
    assert watcher.returncode == 0


def test_logs_end_on_ctrl_c(running: Settings) -> None:
    """Ctrl-C ends `make logs` without a traceback."""
    for program in ("enrich_stream", "generator"):  # as if a pipeline had run, also when this test runs alone
        (running.state / "logs" / f"{program}-sales.log").touch()
    with subprocess.Popen(
        ["make", "logs"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as watcher:
        assert watcher.stdout is not None
        assert watcher.stderr is not None
        assert "==>" in watcher.stdout.readline()
        os.killpg(watcher.pid, signal.SIGINT)
        assert "Traceback" not in watcher.stderr.read()


@pytest.mark.parametrize("command", ["sql", "topic"])
def test_a_command_whose_service_is_down_says_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """A command whose service is down prints one line with the command to type, not the client's error."""
    monkeypatch.setenv("FRESHET_STATE", str(tmp_path))
    ensure_secrets(tmp_path / "secrets.env")
    for name, port in zip(PORTS, free_ports(len(PORTS)), strict=True):
        monkeypatch.setenv(PREFIX + name.upper(), str(port))
    answer = make(command)
    assert answer.returncode != 0
    first, *rest = answer.stderr.splitlines()
    assert first.startswith("freshet: ")
    assert first.endswith("Type: make up")
    assert all(line.startswith("make: ***") for line in rest)


def test_commands_before_the_first_start_say_what_to_type(tmp_path: Path) -> None:
    """Before the first start, a command prints one line with the command to type, without a traceback."""
    environment = {"PATH": os.environ["PATH"], "FRESHET_STATE": str(tmp_path / "never")}
    for command in ("status", "password", "logs"):
        answer = make(command, env=environment)
        assert answer.returncode != 0
        assert "make up" in answer.stderr
        assert "Traceback" not in answer.stderr
