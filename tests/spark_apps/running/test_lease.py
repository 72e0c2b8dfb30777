"""One application a pipeline, known to run exactly as long as it lives."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pymysql
import pytest

from foundation.connections import connect, login
from foundation.errors import AlreadyRunningError
from foundation.settings import ROOT
from services.waiting import wait_until
from spark_apps.running.lease import Lease, is_running, request_stop
from tests.frozen import frozen

if TYPE_CHECKING:
    from foundation.connections import Login
    from foundation.settings import Settings

pytestmark = pytest.mark.integration
FROZEN_SECONDS = 60.0
HOLD = """
from foundation.connections import login
from spark_apps.running.lease import Lease
with Lease(login("loader"), "killed"):
    print("held", flush=True)
    input()
"""


@pytest.fixture
def loader(migrated: Settings) -> Login:
    """The account that applications use."""
    return login("loader", migrated)


def test_a_second_application_is_refused_with_the_reason(loader: Login) -> None:
    """While another pipeline's may run."""
    with Lease(loader, "one"), pytest.raises(AlreadyRunningError, match="'one': another application works on it"):
        Lease(loader, "one").__enter__()
    with Lease(loader, "one"), Lease(loader, "other"):
        assert is_running(loader, "one")
        assert is_running(loader, "other")
    assert not is_running(loader, "one")


def test_a_request_to_stop_is_seen_by_the_one_that_runs_and_not_by_the_next(loader: Login) -> None:
    """A request dies with the application that it was meant for."""
    with Lease(loader, "asked") as lease:
        assert not lease.stop_requested()
        request_stop(loader, "asked")
        assert lease.stop_requested()
    with Lease(loader, "asked") as lease:
        assert not lease.stop_requested()


def test_a_request_while_nobody_runs_is_for_the_one_that_goes_on(loader: Login) -> None:
    """Who failed is started again: the request came meanwhile. Whoever has met it forgets it."""
    with Lease(loader, "retried"):
        pass
    request_stop(loader, "retried")
    with Lease(loader, "retried", goes_on=True) as lease:
        assert lease.stop_requested()
    with Lease(loader, "retried", goes_on=True) as lease:
        assert lease.stop_requested()
        lease.forget_request()
    with Lease(loader, "retried", goes_on=True) as lease:
        assert not lease.stop_requested()


def test_a_killed_application_is_known_to_be_gone(loader: Login) -> None:
    """Kill -9, and the pipeline is free."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        assert is_running(loader, "killed")
        holder.kill()
    wait_until(lambda: "held" if is_running(loader, "killed") else None, what="the lock to be let go", seconds=30)


def test_a_warehouse_that_hangs_holds_nobody_up(loader: Login, migrated: Settings) -> None:
    """A look ends within seconds; when the server goes on, the lease is held again, by the one that had it."""
    with Lease(loader, "patient") as lease:
        began = time.monotonic()
        with frozen(migrated, "mariadb", FROZEN_SECONDS):
            assert not lease.stop_requested()
            assert time.monotonic() - began < FROZEN_SECONDS / 2
        request_stop(loader, "patient")
        wait_until(lambda: None if lease.stop_requested() else "not seen", what="the request", seconds=FROZEN_SECONDS)
        assert is_running(loader, "patient")
    assert not is_running(loader, "patient")
    with frozen(migrated, "mariadb", FROZEN_SECONDS):
        began = time.monotonic()
        with pytest.raises(pymysql.OperationalError):
            Lease(loader, "patient").__enter__()
        assert time.monotonic() - began < FROZEN_SECONDS / 2


def test_a_connection_that_the_server_still_has_makes_nobody_its_own_rival(loader: Login, migrated: Settings) -> None:
    """As after a network was away: the server does not learn of a connection's end, and keeps its lock."""
    with Lease(loader, "busy") as lease:
        unended = lease._connection._sock.dup()  # type: ignore[attr-defined]  # noqa: SLF001
        with unended, connect(login("root", migrated)) as root, root.cursor() as cursor:
            cursor.execute("LOCK TABLES pipeline_control WRITE")  # the next look has no answer
            for _ in range(2):
                assert not lease.stop_requested()
            with pytest.raises(AlreadyRunningError):
                Lease(loader, "busy").__enter__()
            cursor.execute("UNLOCK TABLES")
        request_stop(loader, "busy")
        wait_until(lambda: None if lease.stop_requested() else "not seen", what="the request", seconds=FROZEN_SECONDS)
        assert is_running(loader, "busy")
    assert not is_running(loader, "busy")


def test_the_lease_is_taken_again_after_the_connection_was_lost(loader: Login, migrated: Settings) -> None:
    """As after a restart of the database."""
    with Lease(loader, "lost") as lease:
        with connect(login("root", migrated)) as root, root.cursor() as cursor:
            cursor.execute("SELECT IS_USED_LOCK('freshet.pipeline.lost')")
            ((thread,),) = cursor.fetchall()
            cursor.execute("KILL %s", (thread,))
        assert not lease.stop_requested()
        assert is_running(loader, "lost")
