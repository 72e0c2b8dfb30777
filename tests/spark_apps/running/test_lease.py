"""A lease allows one application for each pipeline, and is held exactly as long as that process lives."""

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
from spark_apps.running.lease import Lease, is_held
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
    """Return the account that applications use."""
    return login("loader", migrated)


def test_a_second_application_is_refused_with_the_reason(loader: Login) -> None:
    """A second application of a pipeline is refused with the reason; one of another pipeline is allowed."""
    with Lease(loader, "one"), pytest.raises(AlreadyRunningError, match="'one': another application works on it"):
        Lease(loader, "one").__enter__()
    with Lease(loader, "one"), Lease(loader, "other"):
        assert is_held(loader, "one")
        assert is_held(loader, "other")
    assert not is_held(loader, "one")


def test_a_killed_application_is_known_to_be_gone(loader: Login) -> None:
    """After kill -9 of the holder, the lease of the pipeline is free."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        assert is_held(loader, "killed")
        holder.kill()
    wait_until(lambda: "held" if is_held(loader, "killed") else None, what="the lock to be let go", seconds=30)


def test_a_warehouse_that_hangs_holds_nobody_up(loader: Login, migrated: Settings) -> None:
    """A lease check on a warehouse that hangs ends within seconds; the holder gets its lease again afterwards."""
    with Lease(loader, "patient") as lease:
        began = time.monotonic()
        with frozen(migrated, "mariadb", FROZEN_SECONDS):
            lease.keep()
            assert time.monotonic() - began < FROZEN_SECONDS / 2
        wait_until(lambda: kept(lease, loader, "patient"), what="the lease", seconds=FROZEN_SECONDS)
    assert not is_held(loader, "patient")
    with frozen(migrated, "mariadb", FROZEN_SECONDS):
        began = time.monotonic()
        with pytest.raises(pymysql.OperationalError):
            Lease(loader, "patient").__enter__()
        assert time.monotonic() - began < FROZEN_SECONDS / 2


def test_a_connection_that_the_server_still_has_makes_nobody_its_own_rival(loader: Login) -> None:
    """A holder with a new connection keeps its lease while the server still holds the lock of the old one."""
    with Lease(loader, "busy") as lease:
        unended = lease._connection._sock.dup()  # type: ignore[attr-defined]  # noqa: SLF001
        lease._connection._force_close()  # type: ignore[attr-defined]  # noqa: SLF001  # closes the socket without telling the server
        with unended:
            for _ in range(2):
                lease.keep()
            with pytest.raises(AlreadyRunningError):
                Lease(loader, "busy").__enter__()
        wait_until(lambda: kept(lease, loader, "busy"), what="the lease", seconds=FROZEN_SECONDS)
    assert not is_held(loader, "busy")


def test_the_lease_is_taken_again_after_the_connection_was_lost(loader: Login, migrated: Settings) -> None:
    """The holder gets its lease again after the server closed its connection."""
    with Lease(loader, "lost") as lease:
        with connect(login("root", migrated)) as root, root.cursor() as cursor:
            cursor.execute("SELECT IS_USED_LOCK('freshet.pipeline.lost')")
            ((thread,),) = cursor.fetchall()
            cursor.execute("KILL %s", (thread,))
        assert not is_held(loader, "lost")
        lease.keep()
        assert is_held(loader, "lost")


def test_a_lease_that_another_one_has_taken_is_lost_for_good(loader: Login, migrated: Settings) -> None:
    """However often it is asked for: the connection that was refused is not taken for the lease."""
    with Lease(loader, "taken") as lost:
        with connect(login("root", migrated)) as root, root.cursor() as cursor:
            cursor.execute("SELECT IS_USED_LOCK('freshet.pipeline.taken')")
            ((thread,),) = cursor.fetchall()
            cursor.execute("KILL %s", (thread,))
        with Lease(loader, "taken"):
            for _ in range(3):
                with pytest.raises(AlreadyRunningError):
                    lost.keep()
        lost.keep()
        assert is_held(loader, "taken")


def kept(lease: Lease, loader: Login, pipeline: str) -> str | None:
    """Renew the lease, and return None when the server reports that it is held."""
    lease.keep()
    return None if is_held(loader, pipeline) else "nobody holds it"
