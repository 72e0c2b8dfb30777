"""What a person types once the services run: each command of the README, as make calls it."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
from kafka import KafkaProducer

from services.settings import ROOT
from services.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from services.settings import Settings

pytestmark = pytest.mark.integration
SECONDS = 60.0


def make(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Run make as a person would, also when it is make that runs the tests."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    options.setdefault("env", own)
    return subprocess.run(["make", *words], cwd=ROOT, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload,no-any-return]


def test_up_when_everything_runs_changes_nothing(running: Settings) -> None:
    """It looks, says healthy, and is done."""
    before = (running.state / "supervisord.pid").read_text()
    answer = make("up")
    assert answer.returncode == 0, answer.stderr
    assert [line.split()[0] for line in answer.stdout.splitlines()] == ["mariadb", "kafka", "airflow"]
    assert (running.state / "supervisord.pid").read_text() == before


def test_sql_is_an_analysts_prompt(migrated: Settings) -> None:
    """It can read what analysts read, and write nothing."""
    read = make("sql", input="SELECT COUNT(*) >= 0 AS there FROM sales")
    assert read.stdout.splitlines() == ["there", "1"]
    written = make("sql", input="DELETE FROM sales_enriched")
    assert "DELETE command denied to user 'reader'" in written.stderr
    assert migrated.database == "freshet"


def test_password_prints_airflows_login(running: Settings) -> None:
    """The one that Airflow's page asks for."""
    assert make("password").stdout == f"user admin, password {running.airflow_password.get_secret_value()}\n"


def test_settings_lists_all_and_shows_no_secret(running: Settings) -> None:
    """Name, value, what it is."""
    printed = make("settings").stdout
    assert f"FRESHET_KAFKA_PORT                 {running.kafka_port}" in printed
    assert running.owner_password.get_secret_value() not in printed


@pytest.mark.usefixtures("topics")
def test_topic_prints_enriched_events_as_they_come_and_ends_on_ctrl_c(running: Settings, tmp_path: Path) -> None:
    """A message that is sent while it looks is printed."""
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


def test_commands_before_anything_was_started_say_what_to_type(tmp_path: Path) -> None:
    """One line, not a traceback."""
    environment = {"PATH": os.environ["PATH"], "FRESHET_STATE": str(tmp_path / "never")}
    for command in ("status", "password", "logs"):
        answer = make(command, env=environment)
        assert answer.returncode != 0
        assert "make up" in answer.stderr
        assert "Traceback" not in answer.stderr
