"""Who may use which route of the page, on the real Airflow. The routes are those that the app has, not a list."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from plugins.page.access import MAY_NOT
from plugins.page.app import HEADERS, app
from services.airflow import ADMIN, VIEWER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import httpx

    from services.airflow_api import AirflowApi

    ClientOf = Callable[[str], httpx.Client]
    Presses = Callable[[], set[str]]

pytestmark = pytest.mark.integration
EXAMPLES = {"name": "page.js", "pipeline": "sales", "dag_id": "sales.check"}
CHECK = "/freshet/dags/sales.check/runs"


def routes() -> list[tuple[str, str]]:
    """Return the method and path of each route that the app has, with an example of each parameter."""
    found = []
    for route in app.routes:
        assert isinstance(route, BaseRoute)
        path = re.sub(r"\{(\w+)\}", lambda name: EXAMPLES[name[1]], getattr(route, "path", ""))
        found += [(method, f"/freshet{path}") for method in sorted(getattr(route, "methods", None) or {"GET"})]
    return found


def token_of(client: httpx.Client) -> dict[str, str]:
    """Return the header that the page sends when a button is pressed."""
    return {"X-Freshet-Token": client.get("/freshet/pipelines").raise_for_status().json()["token"]}


@pytest.fixture
def paused(airflow: AirflowApi) -> Iterator[None]:
    """Pause the Dag sales.check while a test runs."""
    airflow.pause("sales.check", paused=True)
    yield
    airflow.pause("sales.check", paused=False)


@pytest.mark.parametrize(("method", "path"), routes())
def test_nobody_gets_anything_without_a_login(client_of: ClientOf, method: str, path: str) -> None:
    """A request without a login is refused on every route, whatever it sends."""
    nobody = client_of("")
    for headers in ({}, {"X-Freshet-Token": "x"}, {"Authorization": "Bearer x"}, {"Cookie": "_token=x"}):
        assert nobody.request(method, path, headers=headers).status_code in (401, 403), headers
    assert nobody.request(method, path).status_code == 401


def test_only_a_post_changes_anything() -> None:
    """A route reads and is GET, or triggers a Dag, is POST, and demands the token and the right to run the Dag."""
    for route in app.routes:
        assert isinstance(route, APIRoute), f"{route} is not guarded by the app's dependencies"
        guards = {getattr(each.call, "__qualname__", "").partition(".")[0] for each in route.dependant.dependencies}
        assert "requires_access_view" in guards
        if route.methods != {"GET"}:
            assert route.methods == {"POST"}
            assert guards >= {"check_token", "check_role", "action_logging"}


def test_a_viewer_may_look_and_not_press(client_of: ClientOf) -> None:
    """The viewer reads everything; each button says that he may only look, and pressing it by hand says the same."""
    viewer = client_of(VIEWER)
    for method, path in routes():
        if method == "GET":
            assert viewer.get(path).status_code == 200, path
    (sales,) = viewer.get("/freshet/pipelines").json()["pipelines"]
    assert {button["why_not"] for button in sales["buttons"]} == {MAY_NOT}
    refused = viewer.post(CHECK, headers=token_of(viewer))
    assert (refused.status_code, refused.json()["detail"]) == (403, MAY_NOT)


def test_a_button_needs_the_users_own_token_beside_the_cookie(client_of: ClientOf, presses: Presses) -> None:
    """Another site can make a browser send the cookie, but not the token: without the user's own, nothing starts."""
    admin, viewer = client_of(ADMIN), client_of(VIEWER)
    before = presses()
    cut = token_of(admin)["X-Freshet-Token"][:-1]
    for headers in ({}, {"X-Freshet-Token": cut}, token_of(viewer), {"Origin": "http://elsewhere.example"}):
        refused = admin.post(CHECK, headers=headers)
        assert refused.status_code == 403
        assert "Load the page again" in refused.json()["detail"]
    assert presses() == before


def test_a_pressed_button_is_a_run_by_that_user_in_airflows_audit_log(
    client_of: ClientOf, airflow: AirflowApi, presses: Presses
) -> None:
    """The admin presses a button with his token: a run by his name exists, and Airflow's audit log has the event."""
    admin = client_of(ADMIN)
    answer = admin.post(CHECK, headers=token_of(admin)).raise_for_status().json()
    assert answer["run_id"] in presses()
    assert airflow.triggered_by("sales.check", answer["run_id"]) == ADMIN
    assert answer["run_id"] in answer["said"]
    events = airflow.audit_log("sales.check")
    assert ("trigger_dag_run", ADMIN) in events


@pytest.mark.usefixtures("paused")
def test_a_paused_dag_is_not_triggered(client_of: ClientOf, presses: Presses) -> None:
    """A run of a paused Dag would wait for ever: the button says so, and the request is refused with the same line."""
    admin = client_of(ADMIN)
    before = presses()
    (sales,) = admin.get("/freshet/pipelines").json()["pipelines"]
    (why_not,) = (button["why_not"] for button in sales["buttons"] if button["dag"] == "sales.check")
    assert why_not == "The Dag sales.check is paused: a run would wait. Unpause it first."
    refused = admin.post(CHECK, headers=token_of(admin))
    assert (refused.status_code, refused.json()["detail"]) == (409, why_not)
    assert presses() == before


def test_only_dags_with_a_button_can_be_triggered(client_of: ClientOf) -> None:
    """A Dag without a button on the page, or one that does not exist, is refused with a line that says which."""
    admin = client_of(ADMIN)
    answer = admin.post("/freshet/dags/demo/runs", headers=token_of(admin))
    assert (answer.status_code, "demo has no button" in answer.text) == (404, True)
    answer = admin.post("/freshet/dags/unknown.enrich/runs", headers=token_of(admin))
    assert (answer.status_code, "unknown.enrich has no button" in answer.text) == (404, True)


def test_wrong_requests_are_told_what_is_wrong(client_of: ClientOf) -> None:
    """A span, a pipeline or a file that does not exist is refused with what is known instead."""
    admin = client_of(ADMIN)
    for path, status, says in (
        ("/freshet/pipelines/sales/series?span=3m", 422, "span must be one of 15m, 1h, 6h, 24h, 7d, 30d, got '3m'"),
        ("/freshet/pipelines/nope/series", 422, "there is no pipelines/nope.toml"),
        ("/freshet/pipelines/sales/series?since=x", 422, "valid number"),
        ("/freshet/pipelines/sales/series?since=inf", 422, "finite number"),
        ("/freshet/pipelines/sales/series?since=nan", 422, "finite number"),
        ("/freshet/web/nope.js", 404, "page.js"),
    ):
        answer = admin.get(path)
        assert answer.status_code == status, answer.text
        assert says in answer.text


def test_other_sites_cannot_frame_the_page_nor_add_scripts(client_of: ClientOf) -> None:
    """Every answer tells the browser that only Airflow may show it in a frame, and that only its own scripts run."""
    assert HEADERS["Content-Security-Policy"] == "default-src 'self'; frame-ancestors 'self'"
    assert HEADERS["X-Content-Type-Options"] == "nosniff"
    admin = client_of(ADMIN)
    for path in [path for method, path in routes() if method == "GET"]:
        assert HEADERS.items() <= {name.title(): value for name, value in admin.get(path).headers.items()}.items(), path
    answer = admin.get("/freshet/")
    assert not re.search(r"(src|href)=\"(https?:)?//", answer.text), "the page works without internet"
