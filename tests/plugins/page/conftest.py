"""A real browser, and clients of the page's routes for each user of Airflow."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import httpx
import pytest
from playwright.sync_api import Page, sync_playwright

from services import browser
from services.airflow import ADMIN, VIEWER
from services.demo import missing_dag
from services.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser

    from foundation.settings import Settings
    from services.airflow_api import AirflowApi

QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
PASSWORDS = {ADMIN: "airflow_password", VIEWER: "airflow_viewer_password"}


@pytest.fixture(scope="module")
def served(running: Settings, airflow: AirflowApi) -> Settings:
    """Return the settings of a stack whose Airflow has read the Dags."""
    wait_until(lambda: missing_dag(airflow), what="the Dags", seconds=120.0)
    return running


@pytest.fixture(scope="module")
def client_of(served: Settings) -> Iterator[Callable[[str], httpx.Client]]:
    """Return a client that is logged in as a user, by the cookie that Airflow's login page sets."""
    clients = []

    def client_of(user: str) -> httpx.Client:
        client = httpx.Client(base_url=served.airflow_api, timeout=30)
        clients.append(client)
        if user:
            login = {"username": user, "password": served.secret(PASSWORDS[user])}
            token = client.post("/auth/token", json=login).raise_for_status().json()["access_token"]
            client.cookies.set("_token", token)
        return client

    yield client_of
    for client in clients:
        client.close()


@pytest.fixture
def presses(airflow: AirflowApi) -> Callable[[], set[str]]:
    """Return a function that returns the runs of sales.check that somebody triggered; new rows trigger others."""
    return lambda: {run for run in airflow.runs("sales.check") if run.startswith("manual__")}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Start a headless Chromium; without one the test is skipped, but not in continuous integration."""
    path = browser.find()
    if path is None and not os.environ.get("CI"):
        pytest.skip("no Chromium on this machine; make test says why none could be installed")
    with sync_playwright() as library:
        opened = library.chromium.launch(executable_path=path, args=list(QUIET))
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def log_in(served: Settings, chromium: Browser) -> Iterator[Callable[..., Page]]:
    """Return a function that opens a window of its own, and logs in by Airflow's form."""
    contexts = []

    def log_in(user: str, **options: object) -> Page:
        context = chromium.new_context(viewport={"width": 1400, "height": 1000}, **options)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.goto(served.airflow_api)
        page.get_by_label("Username").fill(user)
        page.locator("input[type=password]").fill(served.secret(PASSWORDS[user]))
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Freshet").first.wait_for()
        return page

    yield log_in
    for context in contexts:
        context.close()
