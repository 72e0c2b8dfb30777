"""The counters of a pipeline over time, as columns for plots; and when its programs started and failed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal

from foundation.connections import ANSWER_SECONDS, connect
from spark_apps.monitoring.counters import PHASES
from spark_apps.monitoring.latency import percentiles
from spark_apps.monitoring.rollups import DAY, HOUR, KEPT_SECONDS, Rollup, read

if TYPE_CHECKING:
    from collections.abc import Callable

    from foundation.connections import Login

Range = Literal["15m", "1h", "6h", "24h", "7d", "30d"]
RANGES: dict[Range, int] = {"15m": 900, "1h": HOUR, "6h": 6 * HOUR, "24h": DAY, "7d": 7 * DAY, "30d": 30 * DAY}
LEAST_ELAPSED_SECONDS = min(KEPT_SECONDS)  # of a step that goes on; before that its rates say nothing
MOST_MARKS = 1000
STOPPED = (0, -15, 143)  # exit codes of a program that ended by itself or by SIGTERM: no failure
Point = dict[str, float | None]


def step_of(asked: Range) -> int:
    """Return the shortest step that is kept for a range, in seconds."""
    return next(step for step, kept in KEPT_SECONDS.items() if kept >= RANGES[asked])


def read_series(
    reader: Login,
    pipeline: str,
    asked: Range,
    since: float | None = None,
    clock: Callable[[], float] = time.time,
) -> dict[str, Any]:
    """Return columns for plots: `step` in seconds, `at` in Unix seconds, and one list of numbers for each plot.

    A value is None where there is nothing. Where the stream paused, one point of None values breaks the line. Rates are
    events a second. A share is one of the events that were enriched, unmatched or rejected. `lag` and `shed_waiting`
    are the newest values of a step. `phase_...` is that share of a batch's mean
    time which its tasks spent so.

    Args:
        reader: an account that reads the table `counter_rollup`.
        pipeline: the pipeline's name.
        asked: how far to look back.
        since: return no points before this Unix time. To update a plot, pass the `at` of its last point and replace
            that point: its step may have gone on. Rows that were written minutes late are seen when the range is read
            anew.
        clock: the Unix time in seconds.
    """
    step, now = step_of(asked), clock()
    first = max(now - RANGES[asked], since or 0.0)
    with connect(reader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
        found = read(cursor, pipeline, step, first)
    at: list[int] = []
    points: list[Point] = []
    before: int | None = None
    for begin, rollup in found:
        span, after_a_gap = _span(begin, rollup, before, step, now)
        if after_a_gap and before is not None and before + step >= first:
            at.append(before + step)
            points.append(dict.fromkeys(COLUMNS))
        if begin >= first and min(now - begin, step) >= LEAST_ELAPSED_SECONDS:
            at.append(begin)
            points.append(_point(rollup, span))
        before = begin
    return {"step": step, "at": at, **{name: [point[name] for point in points] for name in COLUMNS}}


def read_marks(
    reader: Login,
    pipeline: str,
    asked: Range,
    since: float | None = None,
    clock: Callable[[], float] = time.time,
) -> list[dict[str, Any]]:
    """Return the starts and failures of a pipeline's programs, oldest first, at most the newest 1,000.

    Each is {"at": Unix seconds, "program", "kind": "start" or "failure", "exit_code", "last_line"}. A start has no exit
    code and no line. A program that was asked to end did not fail.

    Args:
        reader: an account that reads the table `program_start`.
        pipeline: the pipeline's name.
        asked: how far to look back.
        since: return nothing before this Unix time.
        clock: the Unix time in seconds.
    """
    first = max(clock() - RANGES[asked], since or 0.0)
    unix = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {}) / 1000000"
    later = "{} >= TIMESTAMP'1970-01-01 00:00:00' + INTERVAL %s SECOND"
    with connect(reader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {unix.format('started_at')} AS at, program, 'start' AS kind, NULL, NULL, id FROM program_start "  # noqa: S608  # our own text
            f"WHERE pipeline = %s AND {later.format('started_at')} UNION ALL "
            f"SELECT {unix.format('ended_at')}, program, 'failure', exit_code, last_line, id FROM program_start "
            f"WHERE pipeline = %s AND {later.format('ended_at')} AND exit_code NOT IN %s "
            "ORDER BY at DESC, id DESC, kind LIMIT %s",
            (pipeline, first, pipeline, first, STOPPED, MOST_MARKS),
        )
        found = list(cursor.fetchall())
    return [
        {"at": float(at), "program": program, "kind": kind, "exit_code": code, "last_line": line}
        for at, program, kind, code, line, _ in reversed(found)
    ]


def _span(begin: int, rollup: Rollup, before: int | None, step: int, now: float) -> tuple[float, bool]:
    """Return the seconds in which a step's batches worked, and whether the stream paused before them.

    A batch that is longer than the step leaves the steps before it empty. That is no pause: its events are spread over
    them. A step that goes on counts as long as its batches took, at least.
    """
    elapsed, batches = min(step, now - begin), rollup.sum["batch_seconds"]
    empty = 0 if before is None else begin - before - step
    if empty > step + rollup.most["batch_seconds"]:
        return max(elapsed, batches), True
    return empty + max(elapsed, min(step, batches)), False


def _point(rollup: Rollup, seconds: float) -> Point:
    """Return the values of one point."""
    total, newest, most = rollup.sum, rollup.newest, rollup.most
    landed = total["enriched"] + total["unmatched"] + total["rejected"]
    longest = most.get("latency_most_seconds")
    p50, p99 = percentiles(total["latency_seconds"], (0.5, 0.99), longest or 0.0)

    def share(count: str) -> float | None:
        return total[count] / landed if landed else None

    rates = {f"{name}_per_second": total[name] / seconds for name in RATES}
    mean, of_tasks = total["batch_seconds"] / total["batches"], sum(total[f"{name}_seconds"] for name in PHASES)
    phases = {f"phase_{name}": mean * total[f"{name}_seconds"] / of_tasks if of_tasks else None for name in PHASES}
    return rates | phases | {
        "shed_waiting": newest["shed_waiting_events"],
        "latency_p50": p50,
        "latency_p99": p99,
        "latency_most": longest,
        "lag": newest["lag_events"],
        "cache_hit_share": share("cache_hits"),
        "absent_share": share("absent"),
        "not_cached_share": share("not_cached"),
        "pages_per_1000": 1000 * total["pages_read"] / landed if landed else None,
        "batch_seconds_most": most["batch_seconds"],
        "snapshot_version": newest["snapshot_version"],
        "snapshot_age_seconds": newest["snapshot_age_seconds"],
        "changes_waiting": newest["changes_waiting"],
    }  # fmt: skip


RATES = ("events", "enriched", "unmatched", "rejected", "shed", "replayed")
COLUMNS = (
    *(f"{name}_per_second" for name in RATES),
    *(f"phase_{name}" for name in PHASES),
    "shed_waiting", "latency_p50", "latency_p99", "latency_most", "lag", "cache_hit_share", "absent_share",
    "not_cached_share", "pages_per_1000", "batch_seconds_most", "snapshot_version", "snapshot_age_seconds",
    "changes_waiting",
)  # fmt: skip
