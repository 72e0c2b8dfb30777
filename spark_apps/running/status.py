"""The status of a pipeline's stream in one sentence: what runs, how far it is behind, and what to do about it.

It is computed from Kafka, the tables `progress`, `wish`, `program_start` and `batch_counters`, and the leases. So it is
right when the application is dead.
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from kafka.errors import KafkaError

from foundation.connections import ANSWER_SECONDS, connect
from foundation.errors import FreshetError
from spark_apps.monitoring.lag import Lag
from spark_apps.monitoring.series import STOPPED
from spark_apps.pipeline.dags import dag_of
from spark_apps.pipeline.topics import known_number
from spark_apps.running.failures import one_line
from spark_apps.running.lease import KEEPER_OF_STREAM, is_held
from spark_apps.running.starts import newest_end
from spark_apps.running.wish import EVER, read_wish

if TYPE_CHECKING:
    from foundation.connections import Login
    from spark_apps.pipeline.definition import Pipeline
    from spark_apps.running.starts import End
    from spark_apps.running.wish import Wish

Kind = Literal["never started", "stopping", "stopped", "running", "starting", "crash-looping", "not kept", "stuck"]
CRASH_LOOP_STARTS = 3  # within ten minutes
STARTING_SECONDS = 60.0
LONGEST_START_SECONDS = 180.0  # with the keeper's rest between two starts
STOPPING_SECONDS = 120.0
STUCK_SECONDS = 60.0
MINUTE, HOUR = 60, 3600


@dataclass(frozen=True)
class Status:
    """What is known of a pipeline's stream now.

    Attributes:
        pipeline: its name.
        kind: in one word.
        wish: what is wanted; None before anybody wished anything.
        waiting: how many events of the topic no batch has read; None if `obstacle` says why that is not known.
        behind_seconds: the age of the oldest of them.
        obstacle: why the topic cannot be looked at; an empty text if it can.
        last_batch_seconds: how long ago the newest batch ended.
        starts: of the application in the last hour.
        recent_starts: of those, in the last ten minutes and since it is wanted: an operator's stops are no crashes.
        last_end: how the newest start that has ended did so.
    """

    pipeline: str
    kind: Kind
    wish: Wish | None
    waiting: int | None
    behind_seconds: float
    obstacle: str
    last_batch_seconds: float | None
    starts: int
    recent_starts: int
    last_end: End | None

    @property
    def is_well(self) -> bool:
        """Whether what is wanted is what runs."""
        if self.kind == "stopping" and self.wish is not None:
            return _age(self.wish) < STOPPING_SECONDS
        return self.kind in ("never started", "stopped", "running", "starting")

    def __str__(self) -> str:
        """One sentence, then what to do."""
        said = f"{self.pipeline}: {self.kind}{self._since()}; {self._behind()}{self._last()}. {self._advice()}"
        return said.strip()

    def _since(self) -> str:
        if self.wish is None:
            return ""
        since = f"{self.wish.since:%Y-%m-%d %H:%M:%S} UTC"
        if self.kind in ("stopping", "stopped"):
            why = f" ({self.wish.reason})" if self.wish.reason else ""
            return f" by {self.wish.wished_by} since {since}{why}"
        return f", wanted by {self.wish.wished_by} since {since}"

    def _behind(self) -> str:
        if self.waiting is None:
            return f"the lag is not known: {self.obstacle}"
        if self.waiting == 0:
            return "no event waits"
        return f"{self.waiting:,} events = {shown(self.behind_seconds)} behind"

    def _last(self) -> str:
        batch = "" if self.last_batch_seconds is None else f", last batch {shown(self.last_batch_seconds)} ago"
        return f"{batch}, {self.starts} start{'' if self.starts == 1 else 's'} in the last hour"

    def _advice(self) -> str:
        log = f"enrich_stream-{self.pipeline}.log"
        dag = dag_of("enrich", self.pipeline)
        start = f"To start it, trigger the Dag {dag}."
        advice = {
            "never started": start,
            "stopping": "It ends after the batch that it is in. A batch that takes 20 s longer is broken off.",
            "stopped": start,
            "running": "",
            "starting": f"{self._failed()}The first batch takes up to half a minute.",
            "crash-looping": f"{self._failed()}Its log is {log}.",
            "not kept": f"It is wanted, and nothing keeps it running: trigger the Dag {dag}, and unpause it.",
            "stuck": f"It lands nothing: read {log}, and see what make status says of the services.",
        }
        return advice[self.kind]

    def _failed(self) -> str:
        """Say how the newest start that has ended failed, if it did; its keeper starts it again."""
        end = self.last_end
        if end is None or end.exit_code in STOPPED or not self.starts:
            return ""
        killed = end.exit_code < 0
        how = f"was killed by signal {-end.exit_code}" if killed else f"failed with exit code {end.exit_code}"
        # What it wrote before it was killed says nothing of that.
        said = "" if killed or not end.last_line else f": {end.last_line.rstrip('.')}"
        return f"Its last start {how}{said}. It is started again within a minute. "


def status_of(reader: Login, bootstrap: str, pipeline: Pipeline) -> Status:
    """Return the status of a pipeline's stream."""
    wish = read_wish(reader, pipeline.name, "enrich_stream")
    works = is_held(reader, pipeline.name)
    kept = is_held(reader, pipeline.name, KEEPER_OF_STREAM)
    with connect(reader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT COUNT(*), "
            "COALESCE(SUM(started_at > UTC_TIMESTAMP() - INTERVAL 10 MINUTE AND started_at >= %s), 0), "
            "MIN(TIMESTAMPDIFF(SECOND, started_at, UTC_TIMESTAMP())) FROM program_start "
            "WHERE pipeline = %s AND program = 'enrich_stream' AND started_at > UTC_TIMESTAMP() - INTERVAL 1 HOUR",
            (wish.since if wish else EVER, pipeline.name),
        )
        ((starts, recent, newest),) = cursor.fetchall()
        cursor.execute(
            "SELECT TIMESTAMPDIFF(SECOND, MAX(finished_at), UTC_TIMESTAMP()) FROM batch_counters WHERE pipeline = %s",
            (pipeline.name,),
        )
        ((last_batch,),) = cursor.fetchall()
    last_end = newest_end(reader, pipeline.name, "enrich_stream")
    waiting, behind, obstacle = _lag(reader, bootstrap, pipeline)
    since_start = float(newest) if newest is not None else HOUR
    until_batch = HOUR if last_batch is None else float(last_batch)
    kind = _kind(wish, works=works, kept=kept, recent=int(recent), since_start=since_start, until_batch=until_batch)
    if kind == "running" and since_start > STARTING_SECONDS and until_batch > STUCK_SECONDS:
        is_late = waiting is None or (waiting > 0 and behind > STUCK_SECONDS)
        kind = "stuck" if is_late else kind
    return Status(
        pipeline.name,
        kind,
        wish,
        waiting,
        behind,
        obstacle,
        last_batch and float(last_batch),
        int(starts),
        int(recent),
        last_end,
    )


def _kind(  # noqa: PLR0913  # what is known, and one answer for each case
    wish: Wish | None, *, works: bool, kept: bool, recent: int, since_start: float, until_batch: float
) -> Kind:
    has_landed = works and until_batch <= since_start  # a batch has ended since the newest start
    if wish is None:
        return "running" if works else "never started"
    if not wish.running:
        return "stopping" if works or kept else "stopped"
    if recent >= CRASH_LOOP_STARTS and not has_landed:
        return "crash-looping"
    if works:
        return "running" if has_landed or since_start > STARTING_SECONDS else "starting"
    if since_start < STARTING_SECONDS or (kept and min(since_start, _age(wish)) < LONGEST_START_SECONDS):
        return "starting"
    return "stuck" if kept else "not kept"


def _age(wish: Wish) -> float:
    return (datetime.now(UTC).replace(tzinfo=None) - wish.since).total_seconds()


def _lag(reader: Login, bootstrap: str, pipeline: Pipeline) -> tuple[int | None, float, str]:
    """Return how many events wait, the age of the oldest one in seconds, and why that is not known."""
    lag = Lag(bootstrap, pipeline.source.topic)
    with closing(lag):
        try:
            number = known_number(bootstrap, pipeline.source.topic, reader)
            with connect(reader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
                cursor.execute(
                    "SELECT kafka_partition, next_offset FROM progress WHERE pipeline = %s AND source = %s",
                    (pipeline.name, number),
                )
                offsets = dict(cursor.fetchall())
            waiting = lag.behind(offsets)
            oldest = lag.oldest_unread(offsets) if waiting else None
        except (KafkaError, FreshetError) as error:
            return None, 0.0, one_line(error).rstrip(".")
    return waiting, 0.0 if oldest is None else max(0.0, time.time() - oldest), ""


def shown(seconds: float) -> str:
    """Write a duration for a person."""
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * HOUR:
        return f"{seconds / MINUTE:.0f} min"
    return f"{seconds / HOUR:.0f} h"
