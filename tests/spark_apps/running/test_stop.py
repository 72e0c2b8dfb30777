"""A program learns of a stop request in one place, whoever makes the request."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from typing import TYPE_CHECKING

import pytest

from foundation.connections import login
from spark_apps.running.stop import KEPT_BY, RUN_ID, Stop
from spark_apps.running.wish import wish_running, wish_stopped
from tests.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foundation.connections import Login
    from foundation.settings import Settings
    from spark_apps.running.wish import Program

pytestmark = pytest.mark.integration
SECONDS = 60.0
PROGRAM: Program = "enrich_stream"


@pytest.fixture
def loader(migrated: Settings, monkeypatch: pytest.MonkeyPatch) -> Login:
    """Return the account that applications use, for a process without a keeper."""
    monkeypatch.delenv(KEPT_BY, raising=False)
    return login("loader", migrated)


@pytest.fixture
def sigterm() -> Iterator[None]:
    """Restore this process' handler of SIGTERM after the test."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def test_a_wish_is_seen_at_the_next_look_and_stays(loader: Login) -> None:
    """A stop request is seen at the next look at the warehouse, and stays even if the program is wanted again."""
    asked = Stop(loader, "asked")
    assert not asked.look()
    wish_stopped(loader, "asked", PROGRAM, by="operator")
    assert not asked.is_asked
    assert asked.look()
    wish_running(loader, "asked", PROGRAM, by="operator")
    assert asked.look()
    assert not Stop(loader, "asked").look()


def test_a_wish_is_for_one_program_of_one_pipeline(loader: Login) -> None:
    """A stop request for the generator does not stop the application."""
    wish_stopped(loader, "apart", "generator", by="operator")
    assert not Stop(loader, "apart").look()
    assert Stop(loader, "apart", "generator").look()


def test_another_start_asks_the_program_to_make_room(loader: Login, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program goes on while its own run of Airflow wishes it, and stops when another run does."""
    monkeypatch.setenv(RUN_ID, "first")
    wish_running(loader, "room", PROGRAM, by="operator", run_id="first")
    asked = Stop(loader, "room")
    assert not asked.look()
    wish_running(loader, "room", PROGRAM, by="operator", run_id="second")
    assert asked.look()
    monkeypatch.delenv(RUN_ID)
    assert not Stop(loader, "room").look(), "a program that was started by hand obeys any wish"


def test_a_program_whose_keeper_died_stops(loader: Login, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program whose keeper has died stops, because another keeper starts it again."""
    with subprocess.Popen(["sleep", "600"]) as keeper:
        monkeypatch.setenv(KEPT_BY, str(keeper.pid))
        kept = Stop(loader, "kept")
        assert not kept.look()
        keeper.kill()
    assert kept.look()


@pytest.mark.usefixtures("sigterm")
def test_sigterm_is_a_request(loader: Login) -> None:
    """SIGTERM is a stop request and ends a pause at once."""
    asked = Stop(loader, "signalled")
    asked.obey_sigterm()
    began = time.monotonic()
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
    asked.rest(SECONDS)
    assert asked.is_asked
    assert time.monotonic() - began < SECONDS / 2


def test_a_pause_ends_when_an_operator_asks(loader: Login) -> None:
    """A stop request ends a pause at the next look at the warehouse; without one the pause has its full length."""
    asked = Stop(loader, "resting")
    began = time.monotonic()
    asked.rest(0.3)
    assert 0.3 <= time.monotonic() - began < SECONDS / 2
    threading.Timer(0.2, wish_stopped, (loader, "resting", PROGRAM), {"by": "operator"}).start()
    asked.rest(SECONDS)
    assert asked.is_asked
    assert time.monotonic() - began < SECONDS / 2


def test_a_warehouse_that_hangs_asks_for_nothing(loader: Login, migrated: Settings) -> None:
    """A look at a warehouse that hangs ends within seconds and returns no stop request."""
    asked = Stop(loader, "patient")
    with frozen(migrated, "mariadb", SECONDS):
        began = time.monotonic()
        assert not asked.look()
        assert time.monotonic() - began < SECONDS / 2


def test_what_goes_on_long_after_the_request_is_broken_off(loader: Login, capsys: pytest.CaptureFixture[str]) -> None:
    """After a stop request, a block that exceeds its limit is cancelled; one that ends in time is not."""
    broken = threading.Event()
    with Stop(loader, "limited").limited(broken.set, 0.0):
        pass
    asked = Stop(loader, "limited")
    with asked.limited(broken.set, 0.1):
        assert not broken.is_set()
        wish_stopped(loader, "limited", PROGRAM, by="operator")
        asked.look()
        assert broken.wait(SECONDS)
    assert "Its batch is broken off; the next start runs that batch again." in capsys.readouterr().out
