"""`up` and `down` after a dead supervisor, a service that does not start, or an interrupted start.

The stack belongs to the test; only the services that a test needs are started.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from foundation.errors import UnfitError
from foundation.settings import PREFIX, ROOT, read_settings
from services import stack
from services.ports import PORTS, free_ports
from services.secrets_file import ensure_secrets
from services.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psutil

    from foundation.settings import Settings

pytestmark = pytest.mark.integration
SECONDS = 60.0


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """Return the settings of a stack that is not started; end afterwards what the test starts."""
    (ROOT / ".freshet").mkdir(exist_ok=True)
    state = Path(tempfile.mkdtemp(prefix="odd-", dir=ROOT / ".freshet"))
    monkeypatch.setenv(f"{PREFIX}STATE", str(state))
    for name, port in zip(PORTS, free_ports(len(PORTS)), strict=True):
        monkeypatch.setenv(PREFIX + name.upper(), str(port))
    ensure_secrets(state / "secrets.env")
    config = read_settings()
    yield config
    stack.down(print)
    left = stack.marked(config)
    shutil.rmtree(state)
    assert not left


def of(config: Settings) -> dict[str, psutil.Process]:
    """Return the stack's processes by name."""
    return {each.name: each.process for each in stack.started() if each.state == config.state}


def test_up_replaces_a_killed_supervisor(small: Settings) -> None:
    """`status` reports a killed supervisor; `up` ends its orphans, then starts a new one."""
    stack.ensure_supervisor(small, print)
    stack.start_programs(small, "kafka")
    wait_until(lambda: None if "java" in of(small) else "not yet", what="Kafka's process", seconds=SECONDS)
    orphans = of(small)
    orphans.pop("supervisord").kill()
    wait_until(lambda: "it answers" if stack.is_running(small) else None, what="the supervisor to end", seconds=SECONDS)
    line = str(stack.status()[0])
    assert line.startswith("supervisor NOT healthy: it does not run")
    assert "make up" in line
    assert "java" in of(small)
    lines: list[str] = []
    stack.ensure_supervisor(small, lines.append)
    assert "java" in lines[0]
    assert stack.is_running(small)
    assert not any(process.is_running() for process in orphans.values())


def test_a_service_that_does_not_start_is_named_with_its_log_and_can_be_started_again(small: Settings) -> None:
    """`up` reports a service that cannot start with its log; once the cause is removed, `up` starts it."""
    in_the_way = small.state / "mariadb"
    in_the_way.touch()
    stack.ensure_supervisor(small, print)
    stack.start_programs(small, "mariadb")
    with pytest.raises(UnfitError, match=r"mariadb does not start\. Read .*logs/mariadb\.log, then type: make up"):
        stack.await_health("mariadb", small, print)
    log = (small.state / "logs" / "mariadb.log").read_text()
    assert f"freshet: [Errno 20] Not a directory: '{in_the_way}/data.half'" in log
    assert "Traceback" not in log
    in_the_way.unlink()
    stack.start_programs(small, "mariadb")
    (program,) = stack.programs(small, "mariadb")
    assert program["statename"] in {"STARTING", "RUNNING"}


def test_down_during_a_first_up_ends_both(small: Settings) -> None:
    """`down` during a first `up` ends all processes, Airflow's migration too; `up` prints one line and ends."""
    command = [sys.executable, "-m", "services", "up"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as coming:
        wait_until(lambda: None if "airflow" in of(small) else "not yet", what="the migration", seconds=SECONDS)
        stack.down(print)
        assert not stack.marked(small)
        _, said = coming.communicate(timeout=SECONDS)
    (line,) = said.splitlines()
    assert line.startswith("freshet: ")
    assert "make up" in line
    assert coming.returncode == 1


def test_up_fails_at_once_when_its_supervisor_dies(small: Settings) -> None:
    """`up` fails at once when its supervisor dies, instead of waiting for the services."""
    stack.ensure_supervisor(small, print)
    of(small)["supervisord"].kill()
    wait_until(lambda: "it answers" if stack.is_running(small) else None, what="the supervisor to end", seconds=SECONDS)
    with pytest.raises(UnfitError, match=r"supervisor .* does not answer .*make up"):
        stack.await_health("kafka", small, print)
