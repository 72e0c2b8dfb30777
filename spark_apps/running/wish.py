"""The wish: whether a pipeline's long-running program is to run, since when, and by whom.

It is a row in the warehouse. Airflow's runs, retries, queued runs and restarts obey it, and so does the program itself.
What really runs is found out by the program's lease (spark_apps/running/lease.py).

Wishes are in the order in which they were asked for: when a Dag was triggered, not when its task came to work. So an
older start that waited, or an older stop that is tried again, never overrides a newer wish.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from foundation.connections import ANSWER_SECONDS, connect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from foundation.connections import Login

Program = Literal["enrich_stream", "generator"]
EVER = datetime(1970, 1, 1)  # noqa: DTZ001  # the warehouse's moments are in UTC, without a zone


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
        asked_at: when it was asked for, in UTC. A wish that was asked for earlier does not override it.
    """

    running: bool
    since: datetime
    wished_by: str
    run_id: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    asked_at: datetime = EVER


def read_wish(loader: Login, pipeline: str, program: Program) -> Wish | None:
    """Return the wish for a program; None if nobody has wished anything yet."""
    with connect(loader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT running, since, wished_by, run_id, options, reason, asked_at FROM wish "
            "WHERE pipeline = %s AND program = %s",
            (pipeline, program),
        )
        for running, since, wished_by, run_id, options, reason, asked_at in cursor.fetchall():
            return Wish(bool(running), since, wished_by, run_id, json.loads(options), reason, asked_at)
    return None


def wish_running(  # noqa: PLR0913  # what a wish consists of
    loader: Login,
    pipeline: str,
    program: Program,
    *,
    by: str,
    run_id: str = "",
    options: Mapping[str, str] | None = None,
    asked_at: datetime | None = None,
) -> bool:
    """Wish that the program runs with these options, watched by a run of Airflow.

    Returns whether that is the newest wish: one that was asked for later stays as it is.

    Args:
        loader: the account that writes.
        pipeline: the program's.
        program: which one.
        by: who wishes it.
        run_id: the run of Airflow that watches it.
        options: the program's own.
        asked_at: when it was asked for, in UTC; by default now.
    """
    return _write(loader, (pipeline, program, True, by, run_id, json.dumps(dict(options or {}))), asked_at)


def wish_stopped(loader: Login, pipeline: str, program: Program, *, by: str, asked_at: datetime | None = None) -> bool:
    """Wish that the program stops; return whether that is the newest wish, as `wish_running` does."""
    return _write(loader, (pipeline, program, False, by, "", "{}"), asked_at)


def end_wish(loader: Login, pipeline: str, program: Program, run_id: str, reason: str = "") -> None:
    """Note that the program has ended by itself, or for a reason that a restart does not cure.

    It changes only the wish of this run of Airflow. Its place in the order stays: a start that was asked for in the
    same moment is newer.
    """
    with connect(loader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
        cursor.execute(
            "UPDATE wish SET running = FALSE, since = UTC_TIMESTAMP(3), wished_by = %s, reason = LEFT(%s, 1000) "
            "WHERE pipeline = %s AND program = %s AND running AND run_id = %s",
            (program, reason, pipeline, program, run_id),
        )


def _write(loader: Login, row: tuple[object, ...], asked_at: datetime | None) -> bool:
    kept = "running", "wished_by", "run_id", "options", "reason", "since"
    newest = ", ".join(f"{name} = IF(VALUES(asked_at) >= asked_at, VALUES({name}), {name})" for name in kept)
    with connect(loader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO wish (pipeline, program, running, wished_by, run_id, options, reason, since, asked_at) "  # noqa: S608  # our own names
            "VALUES (%s, %s, %s, %s, %s, %s, '', UTC_TIMESTAMP(3), COALESCE(%s, UTC_TIMESTAMP(6))) "
            f"ON DUPLICATE KEY UPDATE {newest}, asked_at = GREATEST(asked_at, VALUES(asked_at))",
            (*row, asked_at),
        )
        cursor.execute("SELECT asked_at FROM wish WHERE pipeline = %s AND program = %s", row[:2])
        ((newest_at,),) = cursor.fetchall()
    return asked_at is None or newest_at == asked_at
