"""The counters of batches, rolled up into steps of time: a plot of a month reads some hundred rows, not a million.

A rollup is written in the transaction of its batches' rows, so both agree. It has three parts: sums, the newest row's
values, and the largest values. Which counter is in which part is in its declaration (counters.py).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pymysql.cursors import Cursor

    from spark_apps.monitoring.counters import Roll

HOUR, DAY = 3600, 86_400
KEPT_SECONDS = {5: 2 * HOUR, 60: 2 * DAY, 1800: 31 * DAY}  # for each step, from the shortest to the longest
MOST_REMOVED = 10_000  # rows of a step that are deleted at once
Key = tuple[int, int]  # a step's seconds, and the Unix time of its beginning
_UNIX = "TIMESTAMPDIFF(SECOND, '1970-01-01', at)"
_AT = "TIMESTAMP'1970-01-01 00:00:00' + INTERVAL %s SECOND"


@dataclass(frozen=True)
class Rollup:
    """What is kept of the batches that ended in one step of time.

    Attributes:
        sum: the sums of what adds up; a counter with a label is a dict. `batches` is the number of batches.
        newest: the values of the newest batch, and its Unix time `finished_at`.
        most: the largest values; a counter that had no value is missing.
    """

    sum: dict[str, Any]
    newest: dict[str, Any]
    most: dict[str, Any]

    @classmethod
    def of(cls, row: Mapping[str, Any], rolls: Mapping[str, tuple[Roll, ...]]) -> Rollup:
        """Return the rollup of one batch."""

        def part(roll: Roll) -> dict[str, Any]:
            return {name: row[name] for name, kept in rolls.items() if roll in kept}

        largest = {name: value for name, value in part("most").items() if value is not None}
        newest = part("newest") | {"finished_at": row["finished_at"].timestamp()}
        return cls(part("sum") | {"batches": 1}, newest, largest)

    def __add__(self, later: Rollup) -> Rollup:
        """Return the rollup of the batches of both; of two that ended at the same time, the later one is newer."""
        most = self.most | later.most
        return Rollup(
            _added(self.sum, later.sum),
            max(later.newest, self.newest, key=lambda row: row["finished_at"]),
            {name: max(value, self.most.get(name, value)) for name, value in most.items()},
        )


def add(
    cursor: Cursor, pipeline: str, rows: Iterable[Mapping[str, Any]], rolls: Mapping[str, tuple[Roll, ...]]
) -> None:
    """Add batches to the rollups of all steps, in the caller's transaction.

    Args:
        cursor: of a connection that writes the same rows into `batch_counters`. No other application writes rollups of
            this pipeline: only one has its lease.
        pipeline: the pipeline's name.
        rows: the batches' columns.
        rolls: what is kept of each column.
    """
    found: dict[Key, Rollup] = {}
    for row in rows:
        rollup, second = Rollup.of(row, rolls), int(row["finished_at"].timestamp())
        for step in KEPT_SECONDS:
            key = step, second - second % step
            found[key] = found[key] + rollup if key in found else rollup
    for (step, at), rollup in found.items():
        cursor.execute(
            f"SELECT counts FROM counter_rollup WHERE pipeline = %s AND step_seconds = %s AND at = {_AT} FOR UPDATE",  # noqa: S608  # our own text
            (pipeline, step, at),
        )
        together = rollup
        for (counts,) in cursor.fetchall():
            together = Rollup(**json.loads(counts)) + rollup
        cursor.execute(
            f"REPLACE INTO counter_rollup (pipeline, step_seconds, at, counts) VALUES (%s, %s, {_AT}, %s)",  # noqa: S608  # our own text
            (pipeline, step, at, json.dumps(vars(together), separators=(",", ":"))),
        )


def remove_old(cursor: Cursor, pipeline: str) -> None:
    """Delete what is kept no longer, at most `MOST_REMOVED` rows of each step."""
    for step, seconds in KEPT_SECONDS.items():
        cursor.execute(
            "DELETE FROM counter_rollup WHERE pipeline = %s AND step_seconds = %s "
            "AND at < UTC_TIMESTAMP() - INTERVAL %s SECOND LIMIT %s",
            (pipeline, step, seconds, MOST_REMOVED),
        )


def read(cursor: Cursor, pipeline: str, step: int, since: float) -> list[tuple[int, Rollup]]:
    """Return the rollups that begin at a Unix time or later, and the one before them, each with its beginning."""
    of = "FROM counter_rollup WHERE pipeline = %s AND step_seconds = %s AND at"
    cursor.execute(
        f"SELECT {_UNIX}, counts {of} >= COALESCE((SELECT MAX(at) {of} < {_AT}), {_AT}) ORDER BY at",
        (pipeline, step, pipeline, step, since, since),
    )
    rows = cursor.fetchall()
    parsed = json.loads(f"[{','.join(counts for _, counts in rows)}]")  # in one go: it makes each name once
    return [(at, Rollup(**counts)) for (at, _), counts in zip(rows, parsed, strict=True)]


def _added(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Add numbers by name; those of a dict by its keys."""
    return {
        name: _added(one.get(name, {}), other.get(name, {}))
        if isinstance(one.get(name, other.get(name)), dict)
        else one.get(name, 0) + other.get(name, 0)
        for name in {**one, **other}
    }
