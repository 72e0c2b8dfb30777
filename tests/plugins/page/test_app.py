"""What the page's app does without Airflow's web server: its import, shared answers, and an error's next step."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from typing import TYPE_CHECKING, NoReturn

import httpx
import pymysql

from foundation.settings import ROOT
from plugins.freshet import Page
from plugins.page import app as page
from plugins.page.access import MAY_LOOK
from plugins.page.shared import Shared

if TYPE_CHECKING:
    import pytest
    from starlette.types import ASGIApp, Receive, Scope, Send

SLOW = 0.5  # seconds


def test_a_task_does_not_import_the_page() -> None:
    """Every Airflow task loads the plugin: that imports neither the page's app nor what it asks with."""
    program = "import sys, plugins.freshet; print(*(name for name in sys.modules if name.startswith('plugins.')))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(done.stdout.splitlines()[-1].split()) == {"plugins.freshet", "plugins.links"}


def test_the_first_request_does_not_hold_up_others() -> None:
    """The app is imported once and in a thread, however many requests come first: the event loop goes on meanwhile."""
    loads, answered = [], []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        answered.append(scope)

    def load() -> ASGIApp:
        time.sleep(SLOW)
        loads.append(app)
        return app

    async def longest_pause() -> float:
        mounted, longest = Page(load), 0.0
        requests = asyncio.gather(*(mounted({"type": "http"}, None, None) for _ in range(3)))  # type: ignore[arg-type]
        while not requests.done():
            before = time.monotonic()
            await asyncio.sleep(0.01)
            longest = max(longest, time.monotonic() - before)
        return longest

    assert asyncio.run(longest_pause()) < SLOW / 2
    assert (len(loads), len(answered)) == (1, 3)


def test_old_answers_are_dropped() -> None:
    """Each poll asks for points since another moment, which makes another answer: only young ones are kept."""
    asked: list[int] = []
    shared = Shared(asked.append, seconds=0.05)

    async def kept() -> int:
        for since in range(10):
            await shared.get(since)
        await asyncio.sleep(0.1)
        await asyncio.gather(shared.get(10), shared.get(10))
        return len(shared._answers)  # noqa: SLF001  # nothing else tells how many are kept

    assert asyncio.run(kept()) == 1
    assert asked == [*range(11)]


def test_an_error_of_the_warehouse_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """MariaDB is gone: the answer is the error's line and a command that says more."""

    def lose(*_question: object) -> NoReturn:
        raise pymysql.OperationalError(2013, "Lost connection to MySQL server during query")

    async def answer() -> httpx.Response:
        transport = httpx.ASGITransport(page.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://freshet.test") as client:
            return await client.get("/pipelines/sales/series")

    monkeypatch.setattr(page, "_series", Shared(lose, seconds=1.0))
    monkeypatch.setitem(page.app.dependency_overrides, MAY_LOOK.dependency, lambda: None)
    said = asyncio.run(answer())
    lost = "warehouse error: Lost connection to MySQL server during query."
    assert said.status_code == 503
    assert said.json()["detail"] == f"{lost} Type: make status. It says whether MariaDB is healthy."
