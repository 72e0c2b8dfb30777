"""A version stays while a reader holds it, and is removed after its release."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING

import pytest

from foundation.connections import connect
from foundation.errors import ForgottenChangesError, SnapshotError
from foundation.settings import ROOT
from spark_apps.master.changes import read_changes
from spark_apps.master.publish import KEPT
from spark_apps.master.snapshots import hold
from tests.spark_apps.conftest import files, refreshed, rows

if TYPE_CHECKING:
    from pathlib import Path

    from tests.spark_apps.conftest import Warehouse

pytestmark = pytest.mark.integration
HOLD = """
import sys
from pathlib import Path
from spark_apps.master.snapshots import hold
with hold(Path(sys.argv[1])) as snapshot:
    print("holds", snapshot.version, flush=True)
    input()
"""


def test_a_held_version_stays_and_is_removed_when_its_reader_is_killed(products: Warehouse, folder: Path) -> None:
    """A killed reader releases its version; until then the log keeps the changes that the version needs."""
    refreshed(products, folder)
    reader = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with reader, connect(products.login) as connection:
        assert reader.stdout
        assert reader.stdout.readline() == "holds 1\n"
        for price in (1, 2, 3):
            products.run(f"UPDATE product SET price_cents = {price} WHERE product_id = 1")
            refreshed(products, folder)
        assert files(folder) == {f"v00000{version}.{kind}" for version in (1, 3, 4) for kind in ("pages", "json")}
        assert read_changes(connection, products.master, 0).rows["price_cents"].to_pylist() == [3]
        reader.kill()
        reader.wait()
        last = refreshed(products, folder)
        assert files(folder) == {f"v00000{version}.{kind}" for version in (4, 5) for kind in ("pages", "json")}
        with pytest.raises(ForgottenChangesError):
            read_changes(connection, products.master, 0)
        assert read_changes(connection, products.master, last.position).position == last.position


def test_a_released_version_is_removed_with_the_next_ones(products: Warehouse, folder: Path) -> None:
    """Two versions stay while their readers hold them; the next publication removes a released one."""
    refreshed(products, folder)
    with ExitStack() as moves_on:
        with hold(folder) as old:
            refreshed(products, folder)
            newer = moves_on.enter_context(hold(folder))
            assert (old.version, newer.version) == (1, 2)
            refreshed(products, folder)
            assert rows(old)
        refreshed(products, folder)
        assert not old.path.exists()
        assert rows(newer)


def test_a_version_that_is_removed_before_it_is_locked_is_not_held(
    products: Warehouse, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader whose version is removed before it gets the lock holds the newest version instead."""
    refreshed(products, folder)
    lock = fcntl.flock

    def too_late(file: IO[str], kind: int) -> None:
        monkeypatch.undo()
        for _ in range(KEPT):
            refreshed(products, folder)
        lock(file, kind)

    monkeypatch.setattr(fcntl, "flock", too_late)
    with hold(folder) as held:
        assert (held.version, held.path.exists()) == (1 + KEPT, True)


def test_holding_before_anything_is_published_is_an_error(folder: Path) -> None:
    """Without a published version, holding one is an error that states which Dag publishes."""
    with (
        pytest.raises(SnapshotError, match=r"no snapshot in .*sales.refresh, which publishes one"),
        hold(folder),
    ):
        pass
