"""A keeper runs a program exactly as long as the program is wanted."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import psutil
import pytest

from foundation.connections import connect, login
from foundation.settings import ROOT
from services.waiting import wait_until
from spark_apps.keep_program import role
from spark_apps.running.lease import is_held
from spark_apps.running.wish import read_wish, wish_running, wish_stopped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from foundation.connections import Login
    from foundation.settings import Settings

pytestmark = pytest.mark.integration
SECONDS = 60.0
FOR_EVER = "import time; print('generator: works', flush=True); time.sleep(600)"


class Kept:
    """A keeper of the generator of one pipeline, with a program in its place."""

    def __init__(self, loader: Login, pipeline: str, folder: Path) -> None:
        self.loader = loader
        self.pipeline = pipeline
        self.log = folder / "log"
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, program: str, run_id: str = "", patience: float = 0) -> subprocess.Popen[bytes]:
        """Start a keeper for a Python program."""
        keeper = [sys.executable, "-m", "spark_apps.keep_program", "--pipeline", self.pipeline]
        keeper += ["--run-id", run_id, "--patience", str(patience)]
        keeper += ["--program", "generator", "--log", str(self.log), "--", sys.executable, "-c", program]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "FRESHET_LOADER_PASSWORD": self.loader.password}
        self.processes.append(subprocess.Popen(keeper, env=environment))
        return self.processes[-1]

    def children(self) -> list[psutil.Process]:
        """Return the programs that run now."""
        return [
            child for each in self.processes if each.poll() is None for child in psutil.Process(each.pid).children()
        ]

    def starts(self) -> list[tuple[object, ...]]:
        """Return exit code and last line of each start, the first start first."""
        with connect(self.loader) as connection, connection.cursor() as cursor:
            query = "SELECT exit_code, last_line FROM program_start WHERE pipeline = %s ORDER BY id"
            cursor.execute(query, (self.pipeline,))
            return list(cursor.fetchall())

    def wait(self, met: object, what: str) -> None:
        """Wait for a condition."""
        wait_until(met, what=what, seconds=SECONDS)  # type: ignore[arg-type]


@pytest.fixture
def kept(migrated: Settings, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Kept]:
    """Yield a pipeline whose generator is wanted; end its keepers afterwards."""
    made = Kept(login("loader", migrated), f"kept_{abs(hash(request.node.name)) % 10**9}", tmp_path)
    wish_running(made.loader, made.pipeline, "generator", by="test")
    yield made
    for process in made.processes:
        process.terminate()
        process.wait(SECONDS)


def test_a_program_runs_until_a_stop_is_wished(kept: Kept) -> None:
    """A kept program has no secret, its keeper holds a lease, its start is a row; a stop request ends both."""
    keeper = kept.start(FOR_EVER)
    kept.wait(lambda: None if kept.children() else "none", "the program")
    (program,) = kept.children()
    assert kept.loader.password not in program.environ().values()
    assert is_held(kept.loader, kept.pipeline, role("generator"))
    assert kept.starts() == [(None, None)]
    wish_stopped(kept.loader, kept.pipeline, "generator", by="operator")
    assert keeper.wait(SECONDS) == 0
    assert not program.is_running()
    assert not is_held(kept.loader, kept.pipeline, role("generator"))
    assert kept.starts() == [(-15, "generator: works")]


def test_a_second_keeper_ends_at_once(kept: Kept) -> None:
    """A second keeper ends at once; the first one and its program continue."""
    first = kept.start(FOR_EVER)
    kept.wait(lambda: None if kept.children() else "none", "the program")
    (program,) = kept.children()
    assert kept.start(FOR_EVER).wait(SECONDS) == 0
    assert kept.children() == [program]
    assert first.poll() is None


def test_a_newer_wish_replaces_the_program_without_a_stop(kept: Kept) -> None:
    """A newer run wishes other options: the old keeper ends its program, and only then the new one's program starts."""
    first = kept.start(FOR_EVER)
    kept.wait(lambda: None if kept.children() else "none", "the program")
    wish_running(kept.loader, kept.pipeline, "generator", by="operator", run_id="newer", options={"rate": "2"})
    second = kept.start(FOR_EVER + "  # newer", "newer", SECONDS)
    assert first.wait(SECONDS) == 0
    kept.wait(lambda: None if kept.children() else "none", "the newer program")
    (program,) = kept.children()
    assert "# newer" in program.cmdline()[-1]
    assert program.ppid() == second.pid
    assert [code for code, _ in kept.starts()] == [-15, None]


def test_a_keeper_of_an_overtaken_wish_starts_nothing(kept: Kept) -> None:
    """A keeper whose wish is not the newest any more ends without a start, and leaves the newest wish as it is."""
    wish_running(kept.loader, kept.pipeline, "generator", by="operator", run_id="newer")
    assert kept.start(FOR_EVER, "older").wait(SECONDS) == 0
    assert kept.starts() == []
    wish = read_wish(kept.loader, kept.pipeline, "generator")
    assert wish
    assert (wish.running, wish.run_id) == (True, "newer")


def test_a_program_that_ends_by_itself_stays_ended(kept: Kept) -> None:
    """After a program ended by itself, the wish is stopped and has no failure as its reason."""
    assert kept.start("print('generator: acknowledged 5')").wait(SECONDS) == 0
    wish = read_wish(kept.loader, kept.pipeline, "generator")
    assert wish
    assert (wish.running, wish.wished_by, wish.reason) == (False, "generator", "")
    assert kept.starts() == [(0, "generator: acknowledged 5")]


@pytest.mark.parametrize("code", [1, 2])
def test_a_permanent_error_is_not_retried(kept: Kept, code: int) -> None:
    """A program with a permanent error is not restarted, and the wish has its error line."""
    program = f"import sys; print('generator: exponent must be 0 to 10'); print('noise'); sys.exit({code})"
    assert kept.start(program).wait(SECONDS) == 0
    wish = read_wish(kept.loader, kept.pipeline, "generator")
    assert wish
    assert (wish.running, wish.reason) == (False, "generator: exponent must be 0 to 10")
    assert kept.starts() == [(code, "generator: exponent must be 0 to 10")]


def test_what_was_killed_is_wanted_still_and_not_restarted_within_a_minute(kept: Kept) -> None:
    """The keeper waits before it restarts a killed program; a stop request ends the wait at once."""
    keeper = kept.start(FOR_EVER)
    kept.wait(lambda: None if kept.children() else "none", "the program")
    kept.children()[0].kill()
    kept.wait(lambda: None if kept.starts()[0][0] == -9 else "not yet", "the end to be recorded")
    wish = read_wish(kept.loader, kept.pipeline, "generator")
    assert wish
    assert wish.running
    assert kept.children() == []
    wish_stopped(kept.loader, kept.pipeline, "generator", by="operator")
    assert keeper.wait(SECONDS) == 0
    assert len(kept.starts()) == 1


def test_the_generator_ends_with_its_killed_keeper(kept: Kept) -> None:
    """The next keeper's generator does not run beside one that nobody keeps."""
    keeper = kept.start(FOR_EVER)
    kept.wait(lambda: None if kept.children() else "none", "the program")
    (program,) = kept.children()
    keeper.kill()
    keeper.wait(SECONDS)
    kept.wait(lambda: "it runs" if program.is_running() and program.status() != "zombie" else None, "the program's end")


def test_a_keeper_that_is_asked_to_end_leaves_the_wish(kept: Kept) -> None:
    """A keeper that gets SIGTERM keeps the wish, so the program runs again after the services' next start."""
    keeper = kept.start(FOR_EVER)
    kept.wait(lambda: None if kept.children() else "none", "the program")
    keeper.terminate()
    assert keeper.wait(SECONDS) == 0
    wish = read_wish(kept.loader, kept.pipeline, "generator")
    assert wish
    assert wish.running
