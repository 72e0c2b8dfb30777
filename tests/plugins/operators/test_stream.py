"""The operators give the programs that tasks keep running the right command lines and environments."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from plugins.operators.stream import EnrichStreamOperator, GenerateOperator

if TYPE_CHECKING:
    from collections.abc import Callable

OPTIONS = {"rate": "500", "duration": "60", "keys": "10000", "exponent": "1.0", "seed": "7"}


@pytest.fixture
def connected(connect_to: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Define Airflow's connections, and secrets that the programs must not get."""
    connect_to("kafka_default", conn_type="kafka", extra={"bootstrap.servers": "127.0.0.1:9"})
    connect_to("spark_default", conn_type="spark", host="local[2]")
    connect_to("metrics_default", conn_type="http", port=9, password="for Prometheus")  # noqa: S106  # a password of this test only
    where = {"host": "127.0.0.1", "port": 8, "schema": "freshet"}
    connect_to("warehouse_loader", conn_type="mysql", login="loader", password="to load", **where)  # noqa: S106
    monkeypatch.setenv("FRESHET_OWNER_PASSWORD", "very secret")


@pytest.mark.usefixtures("connected")
def test_the_generators_command_line_has_the_pipelines_topic_and_all_options() -> None:
    """Each option on the command line exists in the generator and is followed by its value."""
    command = GenerateOperator(task_id="generate", pipeline="sales", options=dict(OPTIONS)).command()
    assert command[:4] == [sys.executable, "-m", "generator", "run"]
    where = {"--sink": "kafka", "--bootstrap": "127.0.0.1:9", "--topic": "sales"}
    options = {f"--{name}": value for name, value in OPTIONS.items()}
    assert dict(zip(command[4::2], command[5::2], strict=True)) == {**where, **options}


def test_options_are_templates() -> None:
    """The operator's options are templates that Airflow fills with the Dag's parameters."""
    assert "options" in GenerateOperator.template_fields


@pytest.mark.usefixtures("connected")
def test_the_application_is_submitted_by_the_connection_with_no_secret_in_sight() -> None:
    """Passwords are only in the environment, and only those that the application uses."""
    task = EnrichStreamOperator(task_id="enrich", pipeline="sales")
    command, variables = task.command(), task.environment()
    assert command[command.index("--master") + 1] == "local[2]"
    assert command[-2:] == ["--pipeline", "sales"]
    assert not [word for word in command for secret in ("to load", "for Prometheus", "very secret") if secret in word]
    assert (variables["FRESHET_LOADER_PASSWORD"], variables["FRESHET_METRICS_PASSWORD"]) == (
        "to load",
        "for Prometheus",
    )
    assert "very secret" not in variables.values()
    assert not [name for name, value in variables.items() if name.startswith("AIRFLOW_CONN_") and value]
