"""The page in a real browser, on the real Airflow: what an operator sees, presses and reads.

Screenshots are in `.freshet/screenshots/`; docs/page.png is one of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from foundation.connections import login
from foundation.settings import ROOT
from plugins.page.access import MAY_NOT
from services import stack
from services.airflow import ADMIN, VIEWER
from services.waiting import wait_until
from spark_apps.running.lease import KEEPER_OF_STREAM, is_held

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import FrameLocator, Page

    from foundation.settings import Settings
    from services.airflow_api import AirflowApi

    LogIn = Callable[..., Page]
    Presses = Callable[[], set[str]]

pytestmark = pytest.mark.integration
SOON, LATE = 15_000, 120_000  # milliseconds
SHOTS = ROOT / ".freshet" / "screenshots"


def opened(page: Page) -> FrameLocator:
    """Open Freshet's page by Airflow's navigation, and return its frame when it shows a pipeline."""
    page.get_by_role("link", name="Freshet").first.click()
    frame = page.frame_locator("iframe")
    expect(frame.locator(".sentence").first).to_be_visible(timeout=SOON)
    return frame


def press(frame: FrameLocator, button: str) -> None:
    """Press a button of the page, and confirm."""
    frame.locator(".card").get_by_role("button", name=button, exact=True).click()
    frame.get_by_role("dialog").get_by_role("button", name=button, exact=True).click()


def kind(frame: FrameLocator, text: str, timeout: int = LATE) -> None:
    """Wait until the page calls the pipeline this."""
    expect(frame.locator(".kind").first).to_have_text(text, timeout=timeout)


def shoot(page: Page, name: str) -> None:
    """Keep a screenshot."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / f"{name}.png")


@pytest.fixture
def stopped_afterwards(served: Settings, airflow: AirflowApi) -> Iterator[None]:
    """Stop the stream and the generator after a test."""
    yield
    runs = [(dag, airflow.trigger(dag)) for dag in ("sales.stop", "stop_generator")]
    wait_until(
        lambda: next(filter(None, (airflow.run(*run).unfinished() for run in runs)), None),
        what="the stops", seconds=120.0,
    )  # fmt: skip
    assert not is_held(login("loader", served), "sales")


@pytest.mark.usefixtures("stopped_afterwards")
def test_an_operator_runs_the_demo_stops_it_and_sees_a_killed_driver(served: Settings, log_in: LogIn) -> None:
    """He triggers the demo by its form, sees plots fill, stops it for good, starts it, and sees that it was killed."""
    page = log_in(ADMIN)
    page.goto(f"{served.airflow_api}/dags/demo")
    page.get_by_role("button", name=re.compile("Trigger")).first.click()
    form = page.get_by_role("dialog")
    form.get_by_label("products").fill("2000")
    form.get_by_role("button", name=re.compile("Trigger")).last.click()
    frame = opened(page)
    kind(frame, "running")
    events = frame.locator("figure").first
    events.get_by_text("Numbers").click()
    expect(events.locator("td").nth(2)).to_have_text(re.compile(r"[1-9]\S*/s"), timeout=LATE)
    expect(events.get_by_role("img")).to_have_attribute("aria-label", re.compile(r"^Events\. Newest: in: [\d,.]+/s"))
    expect(frame.locator("#marks")).to_contain_text("enrich_stream started")
    shoot(page, "running")

    press(frame, "Stop")
    expect(frame.locator("#news")).to_contain_text("sales.stop has been triggered")
    kind(frame, "stopped")
    loader = login("loader", served)
    wait_until(
        lambda: "held" if is_held(loader, "sales", KEEPER_OF_STREAM) or is_held(loader, "sales") else None,
        what="the keeper and the driver to end", seconds=60.0,
    )  # fmt: skip
    for _ in range(4):  # it stays so, look after look
        before = frame.locator("#as-of").inner_text()
        expect(frame.locator("#as-of")).not_to_have_text(before, timeout=SOON)
        kind(frame, "stopped", timeout=1)
    expect(frame.locator(".sentence").first).to_contain_text("stopped by admin since")
    expect(frame.locator(".sentence").first).to_contain_text("To start it, trigger the Dag sales.enrich.")
    shoot(page, "stopped")

    press(frame, "Start")
    kind(frame, "running")
    (driver,) = [
        each.process for each in stack.started()
        if each.state == served.state and each.name == "java" and "enrich_stream.py" in each.command_line
    ]  # fmt: skip
    driver.kill()
    kind(frame, "starting")
    expect(frame.locator(".sentence").first).to_contain_text("Its last start was killed by signal 9.", timeout=SOON)
    expect(frame.locator("#marks")).to_contain_text("enrich_stream failed with exit code -9", timeout=LATE)
    shoot(page, "killed")


def test_a_viewer_sees_why_he_cannot_press(log_in: LogIn, presses: Presses) -> None:
    """A viewer's buttons keep the keyboard's focus, say that he may only look, and do nothing when he presses them.

    The card says so, too: a phone shows no title of a button.
    """
    before = presses()
    frame = opened(log_in(VIEWER))
    button = frame.get_by_role("button", name="Check quality")
    expect(button).to_have_attribute("aria-disabled", "true")
    button.focus()
    button.press("Enter")
    expect(frame.locator("#errors")).to_contain_text(MAY_NOT)
    expect(frame.locator(".card").first).to_contain_text(MAY_NOT)
    expect(frame.get_by_role("dialog")).to_be_hidden()
    assert presses() == before


def test_keyboard_alone_is_enough(log_in: LogIn, presses: Presses) -> None:
    """Tab reaches a button, Enter asks, Escape goes back without a run; Tab and Enter confirm and start one."""
    page = log_in(ADMIN)
    page.goto(page.url.rstrip("/") + "/freshet/")
    button = page.get_by_role("button", name="Check quality")
    expect(button).to_be_visible(timeout=SOON)
    before = presses()
    for _ in range(20):
        page.keyboard.press("Tab")
        if button.evaluate("(it) => it === document.activeElement"):
            break
    drawn = page.locator("#as-of").inner_text()
    expect(page.locator("#as-of")).not_to_have_text(drawn, timeout=SOON)
    expect(button).to_be_focused()  # also when the buttons were drawn anew
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("This triggers the Dag sales.check.")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert presses() == before
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#news")).to_contain_text("sales.check has been triggered")
    assert len(presses() - before) == 1


def test_the_error_of_a_press_stays(log_in: LogIn, airflow: AirflowApi) -> None:
    """Somebody pauses the Dag while the question is open: the press fails, and its line stays until it is closed."""
    page = log_in(ADMIN)
    page.goto(page.url.rstrip("/") + "/freshet/")
    page.get_by_role("button", name="Check quality").click(timeout=SOON)
    airflow.pause("sales.check", paused=True)
    try:
        page.get_by_role("dialog").get_by_role("button", name="Check quality").click()
        expect(page.get_by_role("alert")).to_contain_text("The Dag sales.check is paused", timeout=SOON)
        for _ in range(2):
            before = page.locator("#as-of").inner_text()
            expect(page.locator("#as-of")).not_to_have_text(before, timeout=SOON)
        expect(page.get_by_role("alert")).to_contain_text("The Dag sales.check is paused")
        page.get_by_role("button", name="Close").click()
        expect(page.get_by_role("alert")).to_be_empty()
    finally:
        airflow.pause("sales.check", paused=False)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_stands_in_the_way_of_a_screen_reader(log_in: LogIn, scheme: str) -> None:
    """The rules of axe (names, roles, order of headings, contrast) find nothing, in light and in dark."""
    page = log_in(ADMIN, color_scheme=scheme)
    page.goto(page.url.rstrip("/") + "/freshet/")
    expect(page.locator(".sentence").first).to_be_visible(timeout=SOON)
    expect(page.locator("html")).to_have_attribute("data-theme", scheme)
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    shoot(page, scheme)


def test_a_phone_shows_all_of_it(log_in: LogIn) -> None:
    """On a screen of 390 pixels nothing is wider than the screen, and a button is tall enough for a finger."""
    page = log_in(ADMIN)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(page.url.rstrip("/") + "/freshet/")
    expect(page.locator(".sentence").first).to_be_visible(timeout=SOON)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    box = page.get_by_role("button", name="Stop").bounding_box()
    assert box is not None
    assert box["height"] >= 40
    shoot(page, "phone")


def test_it_says_when_the_web_server_is_away_and_when_the_login_is_over(log_in: LogIn) -> None:
    """Old data fades and one line says what to do; when the server answers again, the page goes on by itself."""
    page = log_in(ADMIN)
    page.goto(page.url.rstrip("/") + "/freshet/")
    expect(page.locator(".sentence").first).to_be_visible(timeout=SOON)
    page.context.set_offline(True)
    expect(page.get_by_role("alert")).to_contain_text("Airflow's web server does not answer", timeout=SOON)
    expect(page.locator("#pipelines")).to_have_class("stale")
    expect(page.locator(".kind").first).to_have_text("not known")
    page.context.set_offline(False)
    expect(page.get_by_role("alert")).to_be_empty(timeout=SOON)
    expect(page.locator(".kind").first).not_to_have_text("not known")
    page.context.clear_cookies()
    expect(page.get_by_role("alert")).to_contain_text("You are logged out.", timeout=SOON)
