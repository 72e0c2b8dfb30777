"""Whoever asks for a stop, the application learns of it in one place."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from typing import TYPE_CHECKING

import pytest

from foundation.connections import login
from spark_apps.running import stop
from spark_apps.running.stop import ASKED_BY, IS_RETRY, Stop
from tests.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foundation.connections import Login
    from foundation.settings import Settings

SECONDS = 60.0


@pytest.fixture
def loader(migrated: Settings, monkeypatch: pytest.MonkeyPatch) -> Login:
    """The account that applications use, in a process that nobody has started."""
    for name in (ASKED_BY, IS_RETRY):
        monkeypatch.delenv(name, raising=False)
    return login("loader", migrated)


@pytest.fixture
def sigterm() -> Iterator[None]:
    """Put back what this process does about SIGTERM."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def begun(loader: Login, pipeline: str) -> Stop:
    """A stop as an application has it that starts now."""
    made = Stop(loader, pipeline)
    made.begin()
    return made


@pytest.mark.integration
def test_a_request_is_for_the_application_that_runs_and_not_for_the_next(loader: Login) -> None:
    """A request ends with the application that it was meant for, also when that one is killed before it has met it."""
    first = begun(loader, "asked")
    assert not first.look()
    stop.request(loader, "asked")
    assert not first.is_asked
    assert first.look()
    assert not begun(loader, "asked").is_asked


@pytest.mark.integration
def test_a_retry_keeps_the_request_that_came_before_it(loader: Login, monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow waits before it starts a failed application again. Who has met the request drops it."""
    begun(loader, "retried")
    stop.request(loader, "retried")
    monkeypatch.setenv(IS_RETRY, "1")
    assert begun(loader, "retried").is_asked
    met = begun(loader, "retried")
    met.end()
    assert met.is_asked
    assert not begun(loader, "retried").is_asked


@pytest.mark.integration
def test_an_orphan_stops_and_leaves_the_request_to_its_successor(
    loader: Login, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow starts the application again, and that start is asked to stop as well."""
    with subprocess.Popen(["sleep", "600"]) as task:
        monkeypatch.setenv(ASKED_BY, str(task.pid))
        orphan = begun(loader, "orphaned")
        assert not orphan.look()
        task.kill()
    assert orphan.look()
    stop.request(loader, "orphaned")
    orphan.end()
    assert stop.is_requested(loader, "orphaned")


@pytest.mark.integration
@pytest.mark.usefixtures("sigterm")
def test_sigterm_is_a_request(loader: Login) -> None:
    """It ends a pause at once."""
    asked = begun(loader, "signalled")
    asked.obey_sigterm()
    began = time.monotonic()
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
    asked.rest(SECONDS)
    assert asked.is_asked
    assert time.monotonic() - began < SECONDS / 2


@pytest.mark.integration
def test_a_pause_ends_when_an_operator_asks(loader: Login) -> None:
    """Within a look; otherwise it lasts as long as it is meant to."""
    asked = begun(loader, "resting")
    began = time.monotonic()
    asked.rest(0.3)
    assert 0.3 <= time.monotonic() - began < SECONDS / 2
    threading.Timer(0.2, stop.request, (loader, "resting")).start()
    asked.rest(SECONDS)
    assert asked.is_asked
    assert time.monotonic() - began < SECONDS / 2


@pytest.mark.integration
def test_a_warehouse_that_hangs_asks_for_nothing(loader: Login, migrated: Settings) -> None:
    """And holds nobody up."""
    asked = begun(loader, "patient")
    with frozen(migrated, "mariadb", SECONDS):
        began = time.monotonic()
        assert not asked.look()
        assert time.monotonic() - began < SECONDS / 2


@pytest.mark.integration
def test_what_goes_on_long_after_the_request_is_broken_off(loader: Login, capsys: pytest.CaptureFixture[str]) -> None:
    """What ends in time is not; without a request nothing is."""
    broken = threading.Event()
    with begun(loader, "limited").limited(broken.set, 0.0):
        pass
    asked = begun(loader, "limited")
    with asked.limited(broken.set, 0.1):
        assert not broken.is_set()
        stop.request(loader, "limited")
        asked.look()
        assert broken.wait(SECONDS)
    assert "Its batch is broken off; the next start runs that batch again." in capsys.readouterr().out
