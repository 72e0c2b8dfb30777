"""What is wrong with a stream beside its status, by the rollups of its counters of the last ten minutes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from foundation.connections import ANSWER_SECONDS, connect
from spark_apps.monitoring import rollups

if TYPE_CHECKING:
    from foundation.connections import Login
    from spark_apps.running.status import Status

LOOKED_BACK_MINUTES = 10
STEP_SECONDS = 60
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
    now = time.time()
    since = now // STEP_SECONDS * STEP_SECONDS - LOOKED_BACK_MINUTES * 60
    with connect(loader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
        steps = rollups.read(cursor, status.pipeline, STEP_SECONDS, since)
    if not steps:
        return []
    recent = [rollup for at, rollup in steps if at >= since]
    lags = [each.newest["lag_events"] for each in recent if each.newest["lag_events"] is not None]
    newest = steps[-1][1].newest
    damaged, age = newest["shed_damaged_events"], newest["snapshot_age_seconds"] + now - newest["finished_at"]
    found = []
    if len(lags) >= LOOKED_BACK_MINUTES and all(new > old for old, new in pairwise(lags)):
        found.append(f"the lag grows for {LOOKED_BACK_MINUTES} minutes, from {lags[0]:,} to {lags[-1]:,} events")
    events = sum(each.sum["events"] for each in recent)
    for name, bound in (("rejected", bounds.rejected), ("unmatched", bounds.unmatched)):
        share = sum(each.sum[name] for each in recent) / max(events, 1)
        if events >= LEAST_EVENTS and share > bound:
            found.append(f"{share:.0%} of the events of 10 minutes are {name}, the bound is {bound:.0%}")
    if damaged:
        found.append(f"{damaged:,} shed events are in damaged shed files")
    if age > bounds.snapshot_hours * 3600:
        found.append(f"the snapshot is old: {age / 3600:.0f} h, the bound is {bounds.snapshot_hours:.0f} h")
    return found
