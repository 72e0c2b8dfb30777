"""The starts of long-running programs: when each began, when and how it ended, and its last line."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, NamedTuple

from foundation.connections import ANSWER_SECONDS, connect

if TYPE_CHECKING:
    from foundation.connections import Login
    from spark_apps.running.wish import Program

KEPT_DAYS = 30


class End(NamedTuple):
    """How a start ended: its exit code, negative for a signal, and the last line of its log."""

    exit_code: int
    last_line: str


def record_start(loader: Login, pipeline: str, program: Program, pid: int) -> int:
    """Write a start, and return its number."""
    with connect(loader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO program_start (pipeline, program, host, pid) VALUES (%s, %s, %s, %s)",
            (pipeline, program, socket.gethostname(), pid),
        )
        number = cursor.lastrowid
        cursor.execute(
            "DELETE FROM program_start WHERE pipeline = %s AND program = %s "
            "AND started_at < UTC_TIMESTAMP() - INTERVAL %s DAY",
            (pipeline, program, KEPT_DAYS),
        )
    return int(number)


def record_end(loader: Login, start: int, exit_code: int, last_line: str) -> None:
    """Write how a start ended."""
    with connect(loader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
        cursor.execute(
            "UPDATE program_start SET ended_at = UTC_TIMESTAMP(3), exit_code = %s, last_line = LEFT(%s, 1000) "
            "WHERE id = %s",
            (exit_code, last_line, start),
        )


def record_metrics_port(loader: Login, pipeline: str, port: int | None) -> None:
    """Write where the application that runs now serves its metrics; an application without a keeper has no start."""
    with connect(loader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
        cursor.execute(
            "UPDATE program_start SET metrics_port = %s "
            "WHERE pipeline = %s AND program = 'enrich_stream' AND ended_at IS NULL ORDER BY id DESC LIMIT 1",
            (port, pipeline),
        )


def metrics_port(reader: Login, pipeline: str) -> int | None:
    """Return where the newest start of the application serves its metrics; None if it serves none, or has ended."""
    with connect(reader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT IF(ended_at IS NULL, metrics_port, NULL) FROM program_start "
            "WHERE pipeline = %s AND program = 'enrich_stream' ORDER BY id DESC LIMIT 1",
            (pipeline,),
        )
        return next((port for (port,) in cursor.fetchall()), None)


def newest_end(reader: Login, pipeline: str, program: Program) -> End | None:
    """Return how the newest start that has ended did so; None if no start has ended."""
    with connect(reader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT exit_code, COALESCE(last_line, '') FROM program_start "
            "WHERE pipeline = %s AND program = %s AND ended_at IS NOT NULL ORDER BY id DESC LIMIT 1",
            (pipeline, program),
        )
        return next((End(code, line) for code, line in cursor.fetchall()), None)
