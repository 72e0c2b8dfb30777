"""The wish: whether a pipeline's long-running program is to run, since when, and by whom.

It is a row in the warehouse. Airflow's runs, retries, queued runs and restarts obey it, and so does the program itself.
What really runs is found out by the program's lease (spark_apps/running/lease.py).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from foundation.connections import ANSWER_SECONDS, connect

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from foundation.connections import Login

Program = Literal["enrich_stream", "generator"]


@dataclass(frozen=True)
class Wish:
    """What is wanted of one program.

    Attributes:
        running: whether it is to run.
        since: when that was wished, in UTC.
        wished_by: a user of Airflow, or the program itself when it has ended.
        run_id: the run of Airflow that watches the program.
        options: the program's own options.
        reason: why it stopped, if a failure stopped it.
    """

    running: bool
    since: datetime
    wished_by: str
    run_id: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""


def read_wish(loader: Login, pipeline: str, program: Program) -> Wish | None:
    """Return the wish for a program; None if nobody has wished anything yet."""
    with connect(loader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT running, since, wished_by, run_id, options, reason FROM wish WHERE pipeline = %s AND program = %s",
            (pipeline, program),
        )
        for running, since, wished_by, run_id, options, reason in cursor.fetchall():
            return Wish(bool(running), since, wished_by, run_id, json.loads(options), reason)
    return None


def wish_running(  # noqa: PLR0913  # what a wish consists of
    loader: Login,
    pipeline: str,
    program: Program,
    *,
    by: str,
    run_id: str = "",
    options: Mapping[str, str] | None = None,
) -> None:
    """Wish that the program runs with these options, watched by a run of Airflow."""
    _write(loader, (pipeline, program, True, by, run_id, json.dumps(dict(options or {})), ""))


def wish_stopped(loader: Login, pipeline: str, program: Program, *, by: str, reason: str = "") -> None:
    """Wish that the program stops; `reason` says why if a failure stopped it."""
    with connect(loader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO wish (pipeline, program, running, wished_by, reason) "
            "VALUES (%s, %s, FALSE, %s, LEFT(%s, 1000)) ON DUPLICATE KEY UPDATE running = FALSE, "
            "since = UTC_TIMESTAMP(3), wished_by = VALUES(wished_by), "
            "reason = VALUES(reason)",
            (pipeline, program, by, reason),
        )


def _write(loader: Login, row: tuple[object, ...]) -> None:
    with connect(loader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO wish (pipeline, program, running, wished_by, run_id, options, reason) "
            "VALUES (%s, %s, %s, %s, %s, %s, %s) ON DUPLICATE KEY UPDATE running = VALUES(running), "
            "since = UTC_TIMESTAMP(3), wished_by = VALUES(wished_by), run_id = VALUES(run_id), "
            "options = VALUES(options), reason = VALUES(reason)",
            row,
        )
