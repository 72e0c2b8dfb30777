"""The page's files in a real browser, with made-up answers of the server: what is drawn, said and kept."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from plugins.page.app import HEADERS
from plugins.page.files import NAMES, content

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page, Route

ADDRESS = "http://freshet.test/freshet/"
TURN = 2100  # milliseconds until the page has asked again
REASON = "Your role may only look."
REMEMBER = """() => {
    window.patience = [];
    const timeout = AbortSignal.timeout.bind(AbortSignal);
    AbortSignal.timeout = (milliseconds) => { window.patience.push(milliseconds); return timeout(milliseconds); };
    window.lines = new Set();
    const stroke = CanvasRenderingContext2D.prototype.stroke;
    CanvasRenderingContext2D.prototype.stroke = function (...of) {
        window.lines.add(this.getLineDash().join());
        return stroke.apply(this, of);
    };
}"""


def state(name: str, **other: object) -> dict[str, Any]:
    """Return the state of a pipeline that runs."""
    button = {"label": "Start", "dag": f"{name}.enrich", "happens": "It starts.", "why_not": ""}
    running = {"name": name, "kind": "running", "is_well": True, "sentence": f"{name}: running.", "buttons": [button]}
    return {**running, "batch_budget_seconds": 5.0, **other}


class Server:
    """Answers a page as the tests want it.

    Attributes:
        pipelines: the states of pipelines that it tells.
        marks: the starts and failures that it tells.
        failures: by a path's end, the status and the line of an error.
        asked: the paths that were asked for.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.pipelines: Any = [state("sales")]
        self.marks: list[dict[str, object]] = []
        self.failures: dict[str, tuple[int, str]] = {}
        self.asked: list[str] = []
        page.route("**/*", self.answer)

    def answer(self, route: Route) -> None:
        """Answer one request."""
        path = urlsplit(route.request.url).path.removeprefix("/freshet/")
        self.asked.append(path)
        for end, (status, detail) in self.failures.items():
            if path.endswith(end):
                return route.fulfill(status=status, json={"detail": detail})
        name = path.removeprefix("web/") or "index.html"
        if name in NAMES:
            body, kind = content(name)
            return route.fulfill(body=body, content_type=kind, headers=HEADERS)
        if path == "pipelines":
            return route.fulfill(json={"pipelines": self.pipelines, "token": "t"})
        if path.endswith("/series"):
            now = int(time.time())
            at = list(range(now - 60, now, 5))
            return route.fulfill(
                json={"at": at, "events_per_second": [0.15] * len(at), "marks": self.marks, "now": now}
            )
        return route.fulfill(json={"run_id": "r", "said": f"{path} has been triggered"})

    def open(self) -> None:
        """Load the page, and wait until it shows a pipeline."""
        self.page.goto(ADDRESS)
        expect(self.page.locator(".card").first).to_be_visible()

    def turn(self, times: int = 1) -> None:
        """Let the page ask for states again."""
        for _ in range(times):
            before = self.asked.count("pipelines")
            self.page.clock.fast_forward(TURN)
            while self.asked.count("pipelines") == before:
                self.page.wait_for_timeout(10)
            self.page.wait_for_timeout(50)


@pytest.fixture
def server(chromium: Browser) -> Iterator[Server]:
    """Return a server and its page on a phone."""
    context = chromium.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.clock.install()
    page.add_init_script(f"({REMEMBER})()")
    yield Server(page)
    context.close()


def press(page: Page, button: str = "Start") -> None:
    """Press a button, and confirm."""
    page.locator(".card").get_by_role("button", name=button).first.click()
    page.get_by_role("dialog").get_by_role("button", name=button).click()


def test_what_a_press_did_is_said_until_the_next_one(server: Server) -> None:
    """The line of a press outlasts polls, good or bad; the next press or the button Close takes it away."""
    page = server.page
    server.failures["/runs"] = (409, "The Dag is paused.")
    server.open()
    press(page)
    expect(page.get_by_role("alert")).to_contain_text("The Dag is paused.")
    server.turn(3)
    expect(page.get_by_role("alert")).to_contain_text("The Dag is paused.")
    assert Axe().run(page).violations_count == 0
    del server.failures["/runs"]
    press(page)
    expect(page.get_by_role("alert")).to_be_empty()
    server.failures["pipelines"] = (503, "The warehouse is away.")
    server.turn(2)
    expect(page.get_by_role("alert")).to_contain_text("The warehouse is away.")
    expect(page.get_by_role("status")).to_contain_text("has been triggered")
    page.get_by_role("button", name="Close").click()
    expect(page.get_by_role("status")).to_be_empty()


def test_a_phone_shows_why_a_button_cannot_be_pressed(server: Server) -> None:
    """The reason is text below the buttons, and a touch says it where all messages are."""
    buttons = [{"label": "Start", "dag": "sales.enrich", "happens": "It starts.", "why_not": REASON}]
    server.pipelines = [state("sales", buttons=buttons)]
    server.open()
    expect(server.page.locator(".card").get_by_text(REASON)).to_be_visible()
    button = server.page.get_by_role("button", name="Start")
    expect(button).to_have_accessible_description(REASON)
    button.click(force=True)  # as a finger does; Playwright waits for a button that can be pressed
    expect(server.page.get_by_role("alert")).to_contain_text(REASON)
    server.turn()
    expect(server.page.get_by_role("alert")).to_contain_text(REASON)


def test_an_error_of_plots_stays_while_states_are_good(server: Server) -> None:
    """Each of the two questions has a line of its own, which does not go on and off with the other's answers."""
    page = server.page
    server.failures["/series"] = (503, "No plots today.")
    server.open()
    line = page.get_by_role("alert").get_by_text("No plots today.")
    line.wait_for()
    node = line.element_handle()
    server.turn(3)
    assert node.evaluate("(it) => it.isConnected")
    expect(page.locator(".kind")).to_have_text("running")
    del server.failures["/series"]
    server.turn(3)
    expect(page.get_by_role("alert")).to_be_empty()


def test_a_pipeline_that_can_be_read_is_chosen_for_plots(server: Server) -> None:
    """A broken file is not chosen at first, and not asked for plots; once chosen, the page says why there are none."""
    page = server.page
    broken = state("aaa", kind="unreadable", is_well=False, sentence="pipelines/aaa.toml is no TOML. Correct it.")
    server.pipelines = [broken, state("sales")]
    server.open()
    expect(page.get_by_role("heading", name="Plots of sales")).to_be_visible()
    expect(page.locator("canvas").first).to_be_visible()
    page.get_by_role("region", name="Pipeline aaa").get_by_role("button", name="Plots").click()
    expect(page.locator("#plots")).to_contain_text("There are no plots: pipelines/aaa.toml is no TOML. Correct it.")
    expect(page.locator("canvas").first).to_be_hidden()
    server.turn(3)
    assert "pipelines/aaa/series" not in server.asked
    expect(page.get_by_role("alert")).to_be_empty()
    server.pipelines = [state("aaa"), state("sales")]
    server.turn(3)
    expect(page.locator("canvas").first).to_be_visible()


def test_cards_stay_what_they_are(server: Server) -> None:
    """A click that outlasts a poll counts, selected text stays selected, and a second pipeline's button keeps focus."""
    page = server.page
    server.pipelines = [state("rides"), state("sales", sentence="sales: running; last batch 2 s ago. All well.")]
    server.open()
    card = page.get_by_role("region", name="Pipeline sales")
    card.get_by_role("button", name="Plots").focus()
    select = "(it) => getSelection().setBaseAndExtent(it.firstChild, 0, it.firstChild, 5)"
    card.locator(".sentence").evaluate(select)
    server.pipelines = [
        state("rides", alarms=["late"]),
        state("sales", sentence="sales: running; last batch 14 s ago. All well."),
    ]
    server.turn()
    expect(card.locator(".sentence")).to_have_text("sales: running; last batch 14 s ago. All well.")
    assert page.evaluate("getSelection().toString()") == "sales"
    expect(card.get_by_role("button", name="Plots")).to_be_focused()
    expect(page.get_by_text("late", exact=True)).to_be_visible()
    card.get_by_role("button", name="Start").hover()
    page.mouse.down()
    server.turn()
    page.mouse.up()
    expect(page.get_by_role("dialog")).to_contain_text("sales.enrich")
    page.keyboard.press("Escape")
    server.pipelines = server.pipelines[1:]
    server.turn()
    expect(page.locator(".card")).to_have_count(1)


def test_a_missing_chart_library_is_named_and_the_states_go_on(server: Server) -> None:
    """The server says which file is missing and what to type; the page says it once, and goes on with the states."""
    page = server.page
    missing = "the chart library must be in /x/jars/page, but is not. Type: make install"
    server.failures["chart.umd.min.js"] = (422, missing)
    server.open()
    expect(page.get_by_role("alert")).to_contain_text(missing)
    server.pipelines = [state("sales", kind="stopped")]
    server.turn(3)
    expect(page.locator(".kind")).to_have_text("stopped")
    expect(page.get_by_role("alert")).to_have_text(missing)
    server.failures.clear()
    server.turn(3)
    expect(page.get_by_role("alert")).to_contain_text("Load this page again.")


def test_a_fault_of_the_page_is_said_and_ends_nothing(server: Server) -> None:
    """An answer that nobody expected is said in one line; the page asks again, and is well after a good answer."""
    server.open()
    server.pipelines = None
    server.turn()
    expect(server.page.get_by_role("alert")).to_contain_text("This page has a fault:")
    expect(server.page.locator(".kind")).to_have_text("not known")
    server.pipelines = [state("sales")]
    server.turn()
    expect(server.page.get_by_role("alert")).to_be_empty()
    expect(server.page.locator(".kind")).to_have_text("running")


def test_nothing_is_called_running_while_the_data_is_old(server: Server) -> None:
    """When a state is not known, the card says so instead of the last one, without its colour."""
    page = server.page
    server.open()
    server.failures["pipelines"] = (503, "warehouse error: Lost connection. Type: make status.")
    server.turn()
    expect(page.get_by_role("alert")).to_contain_text("Type: make status.")
    expect(page.locator(".kind")).to_have_text("not known")
    expect(page.locator(".card")).to_have_class("card unknown")
    expect(page.locator(".sentence")).to_have_text("Last known: sales: running.")
    server.failures.clear()
    server.turn()
    expect(page.locator(".kind")).to_have_text("running")
    expect(page.locator(".card")).to_have_class("card")


def test_the_page_waits_longer_than_a_broker_that_hangs(server: Server) -> None:
    """A broker that hangs holds an answer up for 10 s. The page waits for 20 s, and then names what it can be."""
    server.open()
    assert set(server.page.evaluate("window.patience")) == {20_000}
    server.page.unroute("**/*")
    server.page.route("**/*", lambda route: route.abort())
    server.page.clock.fast_forward(TURN)
    alert = server.page.get_by_role("alert")
    expect(alert).to_contain_text("it is away, or it waits for Kafka or MariaDB. In a shell, make status says")


def test_only_the_streams_failures_are_red_lines(server: Server) -> None:
    """A text says what the vertical lines are. The generator's failure is in the list, and no red line."""
    page = server.page
    failure = {"at": time.time() - 30, "kind": "failure", "exit_code": 1, "last_line": "no space"}
    server.marks = [{**failure, "program": "generator"}]
    server.open()
    expect(page.locator("#plots")).to_contain_text(
        "Vertical lines: enrich_stream started (grey) or failed (red, dashed)"
    )
    expect(page.locator("#marks")).to_contain_text("generator failed with exit code 1: no space")
    assert "4,3" not in page.evaluate("[...window.lines]")
    server.marks.append({**failure, "program": "enrich_stream"})
    server.turn(3)
    expect(page.locator("#marks")).to_contain_text("enrich_stream failed")
    assert "4,3" in page.evaluate("[...window.lines]")


def test_times_below_a_plot_are_round(server: Server) -> None:
    """Each span has at least three ticks, each at a round time, whenever somebody looks."""
    server.page.goto(ADDRESS)
    for span, seconds, apart in (
        ("15m", 900, 300), ("1h", 3600, 900), ("6h", 21600, 3600), ("24h", 86400, 14400), ("7d", 604800, 86400),
        ("30d", 2592000, 432000),
    ):  # fmt: skip
        for now in (1_750_000_000, 1_750_001_399, 1_750_086_400):
            ask = f"timeTicks('{span}', {(now - seconds) * 1000}, {now * 1000})"
            ticks = server.page.evaluate(f"async () => (await import('./web/axes.js')).{ask}")
            assert 3 <= len(ticks) <= 8
            assert all(tick["value"] % (apart * 1000) == 0 for tick in ticks)
            assert all(re.fullmatch(r"\d\d[:-]\d\d", tick["label"]) for tick in ticks)


def test_numbers_beside_a_plot_are_distinct_and_in_one_unit(server: Server) -> None:
    """No label is there twice, however small or large the values are, and times of an axis have one unit."""
    page = server.page
    page.goto(ADDRESS)
    found = page.evaluate(
        "async (most) => { const axes = await import('./web/axes.js');"
        " return ['rate', 'count', 'mean', 'share', 'time'].flatMap((unit) =>"
        " most.map((each) => [unit, each, axes.valueTicks(axes[unit], each).map((tick) => tick.label)])); }",
        [0.0004, 0.02, 0.15, 1, 3, 7.5, 99, 180, 250, 1000, 7300, 90_000, 400_000, 12_345_678],
    )
    for unit, most, labels in found:
        assert len(labels) == len(set(labels)), (unit, most, labels)
        assert len({re.sub(r"[\d.,]+", "", label) for label in labels}) == 1, (unit, most, labels)
        assert 3 <= len(labels) <= 7 or (unit == "count" and most < 3), (unit, most, labels)
    expect(page.locator("canvas").first).to_be_visible()
    drawn = page.evaluate("Object.values(Chart.instances).map((it) => it.scales.y.ticks.map((tick) => tick.label))")
    assert drawn[0] == ["0.00/s", "0.05/s", "0.10/s", "0.15/s"]
