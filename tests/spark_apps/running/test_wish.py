"""The newest wish counts: the one that was asked for last, whoever writes his first."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from foundation.connections import login
from spark_apps.running.wish import Wish, end_wish, read_wish, wish_running, wish_stopped

if TYPE_CHECKING:
    from foundation.connections import Login
    from foundation.settings import Settings

pytestmark = pytest.mark.integration
NOON = datetime(2026, 1, 2, 12)  # noqa: DTZ001  # as the warehouse writes it: in UTC, without a zone
ASKED = ["start a", "stop", "start b"]  # in the order in which they were asked for, a millisecond apart


@pytest.fixture
def loader(migrated: Settings) -> Login:
    """Return the account that writes wishes."""
    return login("loader", migrated)


def carry_out(loader: Login, pipeline: str, what: str) -> bool:
    """Write a wish; return whether it is the newest."""
    at = NOON + timedelta(milliseconds=ASKED.index(what))
    if what == "stop":
        return wish_stopped(loader, pipeline, "generator", by="admin", asked_at=at)
    return wish_running(loader, pipeline, "generator", by="admin", run_id=what, options={"of": what}, asked_at=at)


def test_a_wish_is_read_as_it_was_written(loader: Login) -> None:
    """A wish is read as it was written, with the options of the program."""
    assert read_wish(loader, "written", "generator") is None
    assert wish_running(loader, "written", "generator", by="admin", run_id="r1", options={"rate": "500"}, asked_at=NOON)
    wish = read_wish(loader, "written", "generator")
    assert wish
    assert wish == Wish(True, wish.since, "admin", "r1", {"rate": "500"}, "", NOON)  # noqa: FBT003  # its first field


@pytest.mark.parametrize("order", list(itertools.permutations(ASKED)), ids=" then ".join)
def test_whoever_comes_first_the_last_one_that_was_asked_for_counts(loader: Login, order: tuple[str, ...]) -> None:
    """Two starts and a stop are carried out in any order, each also a second time: the wish is that of the last one."""
    pipeline = "order" + "".join(str(ASKED.index(what)) for what in order)
    for number, what in enumerate(order):
        assert carry_out(loader, pipeline, what) == (what == max(order[: number + 1], key=ASKED.index))
    for what in order:  # as a task does that is tried again
        carry_out(loader, pipeline, what)
    wish = read_wish(loader, pipeline, "generator")
    assert wish
    assert (wish.running, wish.run_id, dict(wish.options)) == (True, "start b", {"of": "start b"})


def test_the_end_of_a_program_changes_only_its_own_wish(loader: Login) -> None:
    """A program that ends after another run has wished it leaves that wish; its own is stopped, with the reason."""
    carry_out(loader, "ended", "start a")
    end_wish(loader, "ended", "generator", "another run", "too late")
    wish = read_wish(loader, "ended", "generator")
    assert wish
    assert wish.running
    end_wish(loader, "ended", "generator", "start a", "it broke")
    wish = read_wish(loader, "ended", "generator")
    assert wish
    assert (wish.running, wish.wished_by, wish.reason) == (False, "generator", "it broke")


def test_a_start_in_the_moment_of_a_programs_end_is_newer(loader: Login) -> None:
    """A start that was asked for just before the program ended by itself starts it anew: the end is nobody's wish."""
    carry_out(loader, "moment", "start a")
    end_wish(loader, "moment", "generator", "start a")
    assert carry_out(loader, "moment", "start b")
