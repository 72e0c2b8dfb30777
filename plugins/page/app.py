"""The routes of the page. Each is for users of Airflow who may see plugins; `access.py` says who may press a button.

What asks a database or the broker runs in threads of this page, never in Airflow's event loop, and is shared by all who
look at the same moment (`shared.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import pymysql
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import FastAPI, HTTPException, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel

from foundation.errors import FreshetError, PermanentError
from plugins.page import buttons, state
from plugins.page.access import MAY_LOOK, MAY_PRESS, make_token
from plugins.page.files import NAMES, content
from plugins.page.shared import Shared, in_thread
from spark_apps.running.failures import one_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-cache",
}

app = FastAPI(title="Freshet", docs_url=None, redoc_url=None, openapi_url=None, dependencies=[MAY_LOOK])
_states = Shared(state.of_all, seconds=1.0)
_series = Shared(state.series, seconds=1.0)


class Started(BaseModel):
    """The answer to a pressed button: the run that it started."""

    run_id: str
    said: str


@app.middleware("http")
async def add_headers(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    """Let no other site show the page in a frame, and no script in that is not ours."""
    response = await call_next(request)
    response.headers.update(HEADERS)
    return response


@app.exception_handler(FreshetError)
@app.exception_handler(pymysql.MySQLError)
async def say_in_one_line(_request: Request, failure: Exception) -> JSONResponse:
    """Answer with the error's own line."""
    return JSONResponse({"detail": one_line(failure)}, status_code=422 if isinstance(failure, PermanentError) else 503)


@app.exception_handler(pymysql.OperationalError)
@app.exception_handler(pymysql.InterfaceError)
async def say_that_the_warehouse_is_away(_request: Request, failure: Exception) -> JSONResponse:
    """Answer with the error's own line, and what to do."""
    return JSONResponse(
        {"detail": f"{one_line(failure).rstrip('.')}. Type: make status. It says whether MariaDB is healthy."},
        status_code=503,
    )


@app.get("/")
@app.get("/web/{name}")
async def web(name: str = "index.html") -> Response:
    """Return a file of the page."""
    if name not in NAMES:
        raise HTTPException(404, f"the file must be one of {', '.join(NAMES)}, got {name!r}")
    found, kind = await in_thread(content, name)
    return Response(found, media_type=kind)


@app.get("/pipelines")
async def pipelines(user: GetUserDep) -> dict[str, object]:
    """Return what every pipeline does now, its buttons for this user, and the token to press them with."""
    found = await _states.get()
    shown = await in_thread(buttons.for_user, user, [each["name"] for each in found])
    return {
        "pipelines": [{**each, "buttons": shown[str(each["name"])]} for each in found],
        "user": user.get_name(),
        "token": make_token(user),
    }


@app.get("/pipelines/{pipeline}/series")
async def series(
    pipeline: str,
    span: Annotated[str, Query(description="15m, 1h, 6h, 24h, 7d or 30d")] = "15m",
    since: Annotated[float, Query(ge=0, allow_inf_nan=False, description="Unix time: only points from then on")] = 0.0,
) -> dict[str, object]:
    """Return a pipeline's counters over time, and the starts and failures of its programs."""
    return await _series.get(pipeline, span, since)


@app.post("/dags/{dag_id}/runs", dependencies=MAY_PRESS)
async def press(dag_id: str, user: GetUserDep) -> Started:
    """Start a run of a Dag that has a button."""
    run_id = await in_thread(buttons.press, dag_id, user.get_name())
    return Started(run_id=run_id, said=f"{dag_id} has been triggered: {run_id}")
