"""Rollups say the same as the rows of batch_counters, whenever batches end and however their rows are written."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foundation.connections import connect
from spark_apps.monitoring.batch_counters import ShedBacklog
from spark_apps.monitoring.rollups import KEPT_SECONDS, MOST_REMOVED, remove_old
from spark_apps.monitoring.task_counts import TaskCounts
from tests.spark_apps.monitoring.batches import Batches

if TYPE_CHECKING:
    from collections.abc import Iterable

    from foundation.settings import Settings

pytestmark = pytest.mark.integration

# Written out, because the declarations of counters are what is tested.
SUMS = (
    "events", "enriched", "unmatched", "absent", "without_key", "rejected", "shed", "replayed", "cache_hits",
    "not_cached", "pages_read", "batch_seconds", "source_seconds", "read_seconds", "join_seconds", "load_seconds",
    "messages_seconds",
)  # fmt: skip
SUMS_BY_LABEL = ("rejected_by_reason", "latency_seconds")
NEWEST = (
    "lag_events", "shed_waiting_events", "shed_damaged_events", "shed_oldest_seconds", "snapshot_version",
    "snapshot_age_seconds", "changes_waiting", "worker_bytes",
)  # fmt: skip
MOST = ("lag_events", "changes_waiting", "latency_most_seconds", "batch_seconds")

NUMBER = st.integers(0, 1000)
SECONDS = st.integers(0, 4000).map(lambda quarters: quarters / 4)  # their sums are exact
COUNTS = st.builds(
    lambda not_cached, absent, counts: replace(
        counts, enriched=counts.cache_hits + not_cached, unmatched=counts.without_key + absent
    ),
    NUMBER,
    NUMBER,
    st.builds(
        TaskCounts,
        events=NUMBER, without_key=NUMBER, cache_hits=NUMBER, pages_read=NUMBER,
        shed=NUMBER, replayed=NUMBER, worker_bytes=NUMBER, latency_most=SECONDS,
        rejected=st.dictionaries(st.sampled_from(["not JSON", 'a "quoted" one', "späť"]), NUMBER).map(Counter),
        latency_seconds=st.dictionaries(st.sampled_from(["0.01", "1.81", "+Inf"]), NUMBER).map(Counter),
        task_seconds=st.dictionaries(st.sampled_from(["source", "read", "join"]), SECONDS).map(Counter),
    ),
)  # fmt: skip
SHED = st.none() | st.builds(ShedBacklog, NUMBER, NUMBER, SECONDS)  # None: the row is written with the next batch's
AGO_MS = st.integers(0, 20_000) | st.integers(0, 7_000_000)
ENDED = st.lists(st.tuples(AGO_MS, COUNTS, SECONDS, NUMBER, SHED), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def batches(migrated: Settings) -> Batches:
    """Return the counters of a pipeline of this file's own."""
    return Batches(migrated, "rolled")


def naive(rows: Iterable[dict[str, Any]], step: int) -> dict[int, dict[str, Any]]:
    """Roll up the rows of batch_counters, by the simplest code."""
    steps: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        steps.setdefault(row["ended_ms"] // 1000 // step * step, []).append(row)
    return {
        at: {
            "sum": {name: sum(row[name] for row in inside) for name in SUMS}
            | {name: dict(sum((Counter(row[name]) for row in inside), Counter())) for name in SUMS_BY_LABEL}
            | {"batches": len(inside)},
            "newest": {name: max(inside, key=lambda row: (row["ended_ms"], row["id"]))[name] for name in NEWEST},
            "most": {name: max((row[name] for row in inside if row[name] is not None), default=None) for name in MOST},
        }
        for at, inside in sorted(steps.items())
    }


def said(rollup: dict[str, Any]) -> dict[str, Any]:
    """Return a rollup as `naive` writes it: without zeros behind labels, with None for a maximum that is missing."""
    sums = {name: dict(+Counter(value)) if isinstance(value, dict) else value for name, value in rollup["sum"].items()}
    newest = {name: value for name, value in rollup["newest"].items() if name != "finished_at"}
    return {"sum": sums, "newest": newest, "most": {name: rollup["most"].get(name) for name in MOST}}


def rows_of(batches: Batches) -> list[dict[str, Any]]:
    """Return the rows of batch_counters with their end in Unix milliseconds."""
    unix = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', finished_at) DIV 1000 AS ended_ms"
    return batches.ask(f"SELECT *, {unix} FROM batch_counters WHERE pipeline = '{batches.name}'")


@settings(max_examples=60)
@given(ended=ENDED, last=st.builds(ShedBacklog, NUMBER))
def test_rollups_are_the_sums_of_the_rows(batches: Batches, ended: list[tuple[Any, ...]], last: ShedBacklog) -> None:
    """Whenever batches end, late or not, and however their rows are split into writes, rollups agree with all rows."""
    batches.clear()
    now_ms = int(time.time()) * 1000
    for ago_ms, counts, seconds, version, shed in ended:
        batches.end((now_ms - ago_ms) / 1000, counts, seconds, version)
        if shed is not None:
            batches.write(shed)
    batches.write(last)
    rows = rows_of(batches)
    assert len(rows) == len(ended)
    for step in KEPT_SECONDS:
        found = batches.rollups(step)
        assert {at: said(rollup) for at, rollup in found.items()} == naive(rows, step)


def test_a_write_that_fails_leaves_neither_rows_nor_rollups(batches: Batches) -> None:
    """When the last rollup of a write is refused, neither the row nor another rollup stays; the next write has all."""
    batches.clear()
    batches.end(time.time(), TaskCounts(events=5))
    batches.run(
        "CREATE TRIGGER refuse BEFORE INSERT ON counter_rollup FOR EACH ROW "
        "IF NEW.step_seconds = 1800 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused'; END IF"
    )
    try:
        batches.write()
        assert rows_of(batches) == []
        assert [batches.rollups(step) for step in KEPT_SECONDS] == [{}, {}, {}]
    finally:
        batches.run("DROP TRIGGER refuse")
    batches.write()
    assert [row["events"] for row in rows_of(batches)] == [5]
    assert [[one["sum"]["events"] for one in batches.rollups(step).values()] for step in KEPT_SECONDS] == [[5]] * 3


def test_old_rollups_are_deleted_in_bounded_work(batches: Batches) -> None:
    """A look deletes what a step no longer keeps, at most ten thousand rows of each step, and nothing else."""
    batches.clear()
    more = 500
    for step, kept in KEPT_SECONDS.items():
        batches.run(
            f"INSERT INTO counter_rollup SELECT '{batches.name}', {step}, "
            f"UTC_TIMESTAMP() - INTERVAL {kept + 60} SECOND - INTERVAL seq * {step} SECOND, '{{}}' "
            f"FROM seq_1_to_{MOST_REMOVED + more}"
        )
        batches.run(
            f"INSERT INTO counter_rollup VALUES ('{batches.name}', {step}, "
            f"UTC_TIMESTAMP() - INTERVAL {kept - 60} SECOND, '{{}}'), ('other', {step}, '2020-01-01', '{{}}')"
        )
    for left in (more + 1, 1, 1):
        with connect(batches.owner) as connection, connection.cursor() as cursor:
            remove_old(cursor, batches.name)
        assert [len(batches.rollups(step)) for step in KEPT_SECONDS] == [left] * 3
    assert batches.ask("SELECT COUNT(*) AS n FROM counter_rollup WHERE pipeline = 'other'") == [{"n": 3}]
    batches.run("DELETE FROM counter_rollup WHERE pipeline = 'other'")


def test_each_write_deletes_what_is_old(batches: Batches) -> None:
    """A write of a row deletes the pipeline's old rollups, so the table does not grow."""
    batches.clear()
    batches.run(f"INSERT INTO counter_rollup VALUES ('{batches.name}', 5, '2020-01-01', '{{}}')")
    batches.end(time.time(), TaskCounts())
    batches.write()
    assert len(batches.rollups(5)) == 1
