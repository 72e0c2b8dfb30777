"""The generator's process: its command line, its environment, and how its task logs and fails."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from plugins.operators.stream import GenerateOperator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

OPTIONS = {"rate": "500", "duration": "60", "keys": "10000", "exponent": "1.0", "seed": "7"}


@pytest.fixture
def generate(connect_to: Callable[..., None]) -> Iterator[GenerateOperator]:
    """The task of the Dag deploy_generator, with a broker at which nobody listens."""
    connect_to("kafka_default", conn_type="kafka", extra={"bootstrap.servers": "127.0.0.1:9"})
    task = GenerateOperator(task_id="generate", pipeline="sales", options=dict(OPTIONS))
    yield task
    if task._producer is not None and task._producer.stdout is not None:  # noqa: SLF001  # a task's process ends instead
        task._producer.stdout.close()  # noqa: SLF001


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the words and the variables that a program gets in place of the generator."""
    program = tmp_path / "python"
    script = [
        "#!/bin/sh",
        f"printf '%s\\n' \"$@\" >{tmp_path}/words",
        f"env >{tmp_path}/variables",
        "echo acknowledged 5",
        "echo 5/s >&2",
    ]
    program.write_text("\n".join(script))
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    return tmp_path


def run(task: GenerateOperator) -> None:
    """Run the task; it reads nothing of the context."""
    task.execute({})


def test_the_command_line_has_the_pipelines_topic_and_all_options(generate: GenerateOperator, stand_in: Path) -> None:
    """Each option is one of the generator's own, followed by its value."""
    run(generate)
    module, name, command, *words = (stand_in / "words").read_text().splitlines()
    assert (module, name, command) == ("-m", "generator", "run")
    where = {"--sink": "kafka", "--bootstrap": "127.0.0.1:9", "--topic": "sales"}
    options = {f"--{name}": value for name, value in OPTIONS.items()}
    assert dict(zip(words[::2], words[1::2], strict=True)) == {**where, **options}


def test_options_are_templates() -> None:
    """The Dag's parameters fill them in."""
    assert "options" in GenerateOperator.template_fields


def test_the_producer_gets_no_secret(
    generate: GenerateOperator, stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither ours nor Airflow's; other variables stay."""
    monkeypatch.setenv("FRESHET_OWNER_PASSWORD", "very secret")
    monkeypatch.setenv("FRESHET_STATE", "/state")
    run(generate)
    variables = dict(line.split("=", 1) for line in (stand_in / "variables").read_text().splitlines() if "=" in line)
    assert variables["FRESHET_STATE"] == "/state"
    assert variables["PATH"] == os.environ["PATH"]
    assert "very secret" not in variables.values()
    assert not [name for name in variables if name.startswith("AIRFLOW_CONN_")]


@pytest.mark.usefixtures("stand_in")
def test_the_producers_lines_are_in_the_tasks_log(
    generate: GenerateOperator, capfd: pytest.CaptureFixture[str]
) -> None:
    """Standard output and standard error."""
    run(generate)
    log = capfd.readouterr().out
    assert "acknowledged 5" in log
    assert "5/s" in log


def test_a_failed_producer_fails_its_task_with_one_line(
    generate: GenerateOperator, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The real generator, whose exponent is out of bounds: its own line has the reason."""
    generate.options["exponent"] = "1e300"
    with pytest.raises(SystemExit):
        run(generate)
    assert "error: exponent: must be 0 to 10, got 1e+300" in capfd.readouterr().out
    (record,) = caplog.records
    assert record.getMessage() == "the generator ended with exit code 2. Its last line, above, says why."
    assert record.exc_info is None
