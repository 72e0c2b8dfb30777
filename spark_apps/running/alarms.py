"""What is wrong with a stream beside its status, and what to do: by counters, quality checks, and its Dag."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from foundation.connections import ANSWER_SECONDS, connect
from spark_apps.monitoring import rollups
from spark_apps.pipeline.dags import dag_of

if TYPE_CHECKING:
    from foundation.connections import Login
    from spark_apps.running.status import Status

LOOKED_BACK_MINUTES = 10
STEP_SECONDS = 60
LEAST_LAGS = 4
LEAST_BEHIND_SECONDS = 10.0  # of a stream whose lag is worth a word: small ones grow and fall by chance
LEAST_EVENTS = 100  # fewer say nothing about a rate
SHOWN_CHARACTERS = 200  # of a check's summary


@dataclass(frozen=True)
class Bounds:
    """From where on something is wrong.

    Attributes:
        snapshot_hours: the oldest age of the master data's snapshot.
        rejected: the largest share of events that cannot be read.
        unmatched: the largest share of events that no master row matches.
    """

    snapshot_hours: float = 48.0
    rejected: float = 0.05
    unmatched: float = 0.2


def alarms(reader: Login, status: Status, bounds: Bounds, *, paused_dag: str = "") -> list[str]:
    """Return a sentence for each thing that is wrong, with what to do.

    Only failed quality checks are wrong with a stream that is not wanted: analysts still read its rows.

    Args:
        reader: an account that reads the tables, with its address.
        status: of the stream.
        bounds: from where on a value is wrong.
        paused_dag: the Dag that keeps the stream running, if it is paused.
    """
    found = failed_checks(reader, status.pipeline)
    if status.wish is None or not status.wish.running:
        return found
    if paused_dag:
        found.append(f"Dag {paused_dag} is paused, so nothing brings back a keeper that was killed: unpause it")
    return [*found, *beyond_bounds(reader, status, bounds)]


def failed_checks(reader: Login, pipeline: str) -> list[str]:
    """Return a sentence for each suite whose newest check failed."""
    with connect(reader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT suite, checked_at, failed, expectations, summary FROM quality_check "
            "WHERE id IN (SELECT MAX(id) FROM quality_check WHERE pipeline = %s GROUP BY suite) AND failed > 0 "
            "ORDER BY suite",
            (pipeline,),
        )
        return [
            f"the quality check of {suite} failed at {checked_at:%Y-%m-%d %H:%M} UTC, {failed} of {expectations} "
            f"expectations are not met ({summary[:SHOWN_CHARACTERS]}): correct the rows, then run its Dag again"
            for suite, checked_at, failed, expectations, summary in cursor.fetchall()
        ]


def beyond_bounds(reader: Login, status: Status, bounds: Bounds) -> list[str]:
    """Return a sentence for each counter that is beyond its bound."""
    now = time.time()
    since = now // STEP_SECONDS * STEP_SECONDS - LOOKED_BACK_MINUTES * 60
    with connect(reader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
        steps = rollups.read(cursor, status.pipeline, STEP_SECONDS, since)
    if not steps:
        return []
    begins = [at for at, _ in steps if at >= since]
    recent = [rollup for at, rollup in steps if at >= since]
    lags = [each.newest["lag_events"] for each in recent if each.newest["lag_events"] is not None]
    newest = steps[-1][1].newest
    damaged, age = newest["shed_damaged_events"], newest["snapshot_age_seconds"] + now - newest["finished_at"]
    found = []
    if status.waiting is not None:
        lags.append(status.waiting)
    half = len(lags) // 2
    looked_back = bool(begins) and now - begins[0] > (LOOKED_BACK_MINUTES - 2) * 60
    # Halves, so that batches of minutes and one dip hide nothing.
    is_behind = status.behind_seconds > LEAST_BEHIND_SECONDS
    if looked_back and is_behind and len(lags) >= LEAST_LAGS and min(lags[half:]) > max(lags[:half]):
        found.append(
            f"the lag grows for {LOOKED_BACK_MINUTES} minutes, from {lags[0]:,} to {lags[-1]:,} events: add "
            "cores or memory, or wait for the end of the burst"
        )
    events = sum(each.sum["events"] for each in recent)
    for name, bound in (("rejected", bounds.rejected), ("unmatched", bounds.unmatched)):
        share = sum(each.sum[name] for each in recent) / max(events, 1)
        if events >= LEAST_EVENTS and share > bound:
            found.append(
                f"{share:.0%} of the events of {LOOKED_BACK_MINUTES} minutes are {name}, the bound is {bound:.0%}: see "
                f"{status.pipeline}_{name}"
            )
    if damaged:
        found.append(f"{damaged:,} shed events are in damaged shed files: docs/operating.md says how to restore them")
    if age > bounds.snapshot_hours * 3600:
        found.append(
            f"the snapshot is old, {age / 3600:.0f} h, the bound is {bounds.snapshot_hours:.0f} h: run the Dag "
            f"{dag_of('refresh', status.pipeline)}"
        )
    return found
