"""What is wrong with a stream beside its status, by the counters of its last ten minutes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from foundation.connections import ANSWER_SECONDS, connect

if TYPE_CHECKING:
    from foundation.connections import Login
    from spark_apps.running.status import Status

LOOKED_BACK_MINUTES = 10
LEAST_EVENTS = 100  # fewer say nothing about a rate


@dataclass(frozen=True)
class Bounds:
    """From where on something is wrong.

    Attributes:
        snapshot_hours: the oldest age of the master data's snapshot.
        rejected: the largest share of events that cannot be read.
        unmatched: the largest share of events that no master row matches.
    """

    snapshot_hours: float
    rejected: float
    unmatched: float


def alarms(loader: Login, status: Status, bounds: Bounds) -> list[str]:
    """Return a sentence for each thing that is wrong; nothing is wrong with a stream that is not wanted."""
    if status.wish is None or not status.wish.running:
        return []
    with connect(loader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT COALESCE(SUM(events), 0), COALESCE(SUM(rejected), 0), COALESCE(SUM(unmatched), 0) "
            "FROM batch_counters WHERE pipeline = %s AND finished_at > UTC_TIMESTAMP() - INTERVAL %s MINUTE",
            (status.pipeline, LOOKED_BACK_MINUTES),
        )
        ((events, rejected, unmatched),) = cursor.fetchall()
        cursor.execute(
            "SELECT MIN(lag_events) FROM batch_counters WHERE pipeline = %s "
            "AND finished_at > UTC_TIMESTAMP() - INTERVAL %s MINUTE AND lag_events IS NOT NULL "
            "GROUP BY TIMESTAMPDIFF(MINUTE, finished_at, UTC_TIMESTAMP()) "
            "ORDER BY TIMESTAMPDIFF(MINUTE, finished_at, UTC_TIMESTAMP()) DESC",
            (status.pipeline, LOOKED_BACK_MINUTES),
        )
        lags = [int(lag) for (lag,) in cursor.fetchall()]
        cursor.execute(
            "SELECT shed_damaged_events, snapshot_age_seconds + TIMESTAMPDIFF(SECOND, finished_at, UTC_TIMESTAMP()) "
            "FROM batch_counters WHERE pipeline = %s ORDER BY id DESC LIMIT 1",
            (status.pipeline,),
        )
        damaged, age = next(iter(cursor.fetchall()), (0, 0.0))
    found = []
    if len(lags) >= LOOKED_BACK_MINUTES and all(new > old for old, new in pairwise(lags)):
        found.append(f"the lag grows for {LOOKED_BACK_MINUTES} minutes, from {lags[0]:,} to {lags[-1]:,} events")
    if events >= LEAST_EVENTS:
        for name, count, bound in (
            ("rejected", rejected, bounds.rejected), ("unmatched", unmatched, bounds.unmatched),
        ):  # fmt: skip
            if count / events > bound:
                found.append(
                    f"{float(count / events):.0%} of the events of 10 minutes are {name}, the bound is {bound:.0%}"
                )
    if damaged:
        found.append(f"{damaged:,} shed events are in damaged shed files")
    if age > bounds.snapshot_hours * 3600:
        found.append(f"the snapshot is old: {age / 3600:.0f} h, the bound is {bounds.snapshot_hours:.0f} h")
    return found
