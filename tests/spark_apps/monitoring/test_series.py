"""What a plot reads: rates, levels, shares and percentiles by steps of time, quickly, whatever the history is."""

from __future__ import annotations

import json
import time
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from foundation.connections import connect, login
from spark_apps.monitoring.batch_counters import ROLLS, ShedBacklog
from spark_apps.monitoring.latency import LABELS
from spark_apps.monitoring.rollups import Rollup
from spark_apps.monitoring.series import RANGES, read_marks, read_series, step_of
from spark_apps.monitoring.task_counts import TaskCounts
from spark_apps.running.starts import record_end, record_start
from tests.spark_apps.monitoring.batches import Batches

if TYPE_CHECKING:
    from foundation.settings import Settings
    from spark_apps.running.wish import Program

pytestmark = pytest.mark.integration
MANY_ROWS = 1_000_000
MOST_SECONDS = 0.1
COUNTS = TaskCounts(
    events=1000, enriched=800, unmatched=150, without_key=50, cache_hits=600, pages_read=20, shed=10,
    rejected=Counter({"not JSON": 50}), task_seconds=Counter({"read": 2.0, "join": 4.0}),
    latency_seconds=Counter({"0.538": 900, "1.81": 100}), latency_most=1.75, worker_bytes=7,
)  # fmt: skip


@pytest.fixture(scope="module")
def seen(migrated: Settings) -> Batches:
    """Return the counters of a pipeline of this file's own."""
    return Batches(migrated, "plotted")


@pytest.fixture
def batches(seen: Batches) -> Batches:
    """Return them without rows."""
    seen.clear()
    return seen


@pytest.fixture
def at() -> int:
    """Return the beginning of a step of 1800 s, and so of all steps, that ended less than an hour ago."""
    return int(time.time() - 1800) // 1800 * 1800


def series(batches: Batches, asked: Any, now: float, since: float | None = None) -> dict[str, Any]:  # noqa: ANN401
    """Read a range as it is seen at a Unix time; it must be plain JSON."""
    found = read_series(batches.reader, batches.name, asked, since, lambda: now)
    assert {len(column) for name, column in found.items() if name != "step"} == {len(found["at"])}
    return dict(json.loads(json.dumps(found, allow_nan=False)))


@pytest.mark.parametrize(
    ("asked", "step"), [("15m", 5), ("1h", 5), ("6h", 60), ("24h", 60), ("7d", 1800), ("30d", 1800)]
)
def test_a_range_has_the_shortest_step_that_is_kept_for_it(asked: Any, step: int) -> None:  # noqa: ANN401
    """Each range has its step, and so at most 1,440 points."""
    assert step_of(asked) == step
    assert RANGES[asked] / step <= 1440


def test_a_point_has_rates_levels_shares_and_percentiles(batches: Batches, at: int) -> None:
    """A step with two batches is one point: what adds up by second or by batch, the newest level, the largest value."""
    batches.end(at + 0.5, COUNTS, 1.0, version=3)
    batches.end(at + 2.5, COUNTS, 2.0, version=4)
    batches.write(ShedBacklog(30))
    found = series(batches, "1h", at + 20)
    assert (found["step"], found["at"]) == (5, [at])
    point = {name: column[0] for name, column in found.items() if name not in {"step", "at"}}
    del point["changes_waiting"]  # other tests change master rows
    assert 0.453 < point.pop("latency_p50") < 0.538
    assert 1.52 < point.pop("latency_p99") < 1.75
    assert point == {
        "events_per_second": 400, "enriched_per_second": 320, "unmatched_per_second": 60, "rejected_per_second": 20,
        "shed_per_second": 4, "shed_waiting": 30, "latency_most": 1.75, "lag": 0,
        "cache_hit_share": 0.6, "absent_share": 0.1, "not_cached_share": 0.2, "pages_per_1000": 20,
        "batch_seconds_most": 2.0, "phase_source": 0, "phase_read": 0.5, "phase_join": 1.0,
        "phase_load": 0, "phase_messages": 0, "snapshot_version": 4, "snapshot_age_seconds": 60,
        "replayed_per_second": 0,
    }  # fmt: skip


def test_a_steady_stream_has_the_same_rate_in_each_range(batches: Batches, at: int) -> None:
    """For half an hour of batches that end every 5 s, each point of each range has the same rate."""
    for second in range(0, 1800, 5):
        batches.end(at + second, COUNTS, 4.9)
    batches.write()
    for asked, points in (("15m", 180), ("1h", 360), ("6h", 30), ("24h", 30), ("7d", 1), ("30d", 1)):
        assert series(batches, asked, at + 1800)["events_per_second"] == pytest.approx([200] * points)


def test_a_pause_is_one_point_of_nothing(batches: Batches, at: int) -> None:
    """After a pause of the stream there is one point of None values, however long the pause was."""
    for second in (0, 5, 10, 600, 605):
        batches.end(at + second, COUNTS)
    batches.write()
    found = series(batches, "1h", at + 1000)
    assert found["at"] == [at, at + 5, at + 10, at + 15, at + 600, at + 605]
    assert found["events_per_second"] == [200, 200, 200, None, 200, 200]
    assert {column[3] for name, column in found.items() if name not in {"step", "at"}} == {None}
    assert series(batches, "1h", at + 1000, since=at + 100)["at"] == [at + 600, at + 605]


def test_batches_that_are_longer_than_a_step_are_no_pause(batches: Batches, at: int) -> None:
    """Events of a batch of 20 s are spread over the steps that it took, not crowded into the one in which it ended."""
    for second in (20, 40, 60):
        batches.end(at + second, COUNTS, 19.5)
    batches.write()
    found = series(batches, "1h", at + 100)
    assert found["at"] == [at + 20, at + 40, at + 60]
    assert found["events_per_second"][1:] == [50, 50]


def test_an_update_has_the_points_since_the_last_one(batches: Batches, at: int) -> None:
    """A reader that passes its last point's time gets that point as it is now, and all points after it."""
    for second in (0, 5, 10):
        batches.end(at + second, COUNTS)
    batches.write()
    before = series(batches, "1h", at + 30)
    batches.end(at + 11, COUNTS)
    batches.end(at + 300, COUNTS)
    batches.write()
    update = series(batches, "1h", at + 400, since=before["at"][-1])
    assert update["at"] == [at + 10, at + 15, at + 300]
    assert update["events_per_second"] == [400, None, 200]
    whole = series(batches, "1h", at + 400)
    assert {name: column[-3:] for name, column in whole.items() if name != "step"} == {
        name: column for name, column in update.items() if name != "step"
    }


def test_a_step_that_goes_on_has_the_rate_of_its_time(batches: Batches, at: int) -> None:
    """A step of half an hour that began a minute ago has that minute's rate; in its first seconds it is left out."""
    batches.end(at + 1, COUNTS)
    batches.write()
    assert series(batches, "7d", at + 4)["at"] == []
    assert series(batches, "7d", at + 100)["events_per_second"] == [10]


def test_a_batch_without_events_has_no_shares_and_no_latency(batches: Batches, at: int) -> None:
    """A job that only looked at shed events has rates of 0; shares and latency are None."""
    batches.end(at, TaskCounts())
    batches.write()
    found = series(batches, "1h", at + 20)
    assert found["events_per_second"] == [0]
    for name in ("cache_hit_share", "absent_share", "pages_per_1000", "latency_p50", "latency_p99", "latency_most"):
        assert found[name] == [None]


def test_an_unknown_pipeline_has_no_points(batches: Batches) -> None:
    """A pipeline without rollups has empty columns and no marks."""
    found = read_series(batches.reader, "nobody", "30d")
    assert (found["at"], found["events_per_second"]) == ([], [])
    assert read_marks(batches.reader, "nobody", "30d") == []


def test_marks_are_starts_and_failures(batches: Batches, migrated: Settings) -> None:
    """Each start is a mark, and each end with an exit code but a stop; of both programs, in the order of their time."""
    loader = login("loader", migrated)
    began = time.time()
    failed = record_start(loader, batches.name, "enrich_stream", 1)
    record_end(loader, failed, 52, "enrich_stream: out of memory")
    stopped: list[tuple[Program, int]] = [("generator", 0), ("generator", -15), ("enrich_stream", 143)]
    for program, code in stopped:
        record_end(loader, record_start(loader, batches.name, program, 1), code, "")
    record_start(loader, batches.name, "generator", 1)
    marks = read_marks(batches.reader, batches.name, "15m")
    assert [(mark["program"], mark["kind"], mark["exit_code"], mark["last_line"]) for mark in marks] == [
        ("enrich_stream", "start", None, None),
        ("enrich_stream", "failure", 52, "enrich_stream: out of memory"),
        ("generator", "start", None, None),
        ("generator", "start", None, None),
        ("enrich_stream", "start", None, None),
        ("generator", "start", None, None),
    ]
    assert all(began - 1 < mark["at"] < time.time() + 1 for mark in marks)
    assert json.loads(json.dumps(marks)) == marks
    assert read_marks(batches.reader, batches.name, "15m", since=time.time() + 1) == []
    assert read_marks(batches.reader, batches.name, "15m", clock=lambda: time.time() + 1000) == []


def rows_read(batches: Batches) -> int:
    """Return how many rows the server has read since its start."""
    return sum(int(row["Value"]) for row in batches.ask("SHOW GLOBAL STATUS LIKE 'Handler_read%'"))


def test_a_month_is_read_quickly_beside_a_million_rows(batches: Batches) -> None:
    """With a million batches and rollups of 31 days, a month takes under 100 ms, and reads no row of a batch."""
    names = [*ROLLS]
    json_names = ("rejected_by_reason", "latency_seconds")
    values = ", ".join("'{}'" if name in json_names else "1" for name in names)
    batches.run(
        f"INSERT INTO batch_counters (pipeline, source, finished_at, {', '.join(names)}) SELECT '{batches.name}', 1, "
        f"UTC_TIMESTAMP() - INTERVAL seq * 2 SECOND, {values} FROM seq_1_to_{MANY_ROWS}"
    )
    row = dict.fromkeys(names, 12345.678) | {
        "rejected_by_reason": {f"field{number}: must be a whole number": 1234 for number in range(10)},
        "latency_seconds": dict.fromkeys(LABELS[30:60], 123_456),
        "finished_at": datetime.now(UTC),
    }
    counts = json.dumps(vars(Rollup.of(row, ROLLS)), separators=(",", ":"))
    with connect(batches.owner) as connection, connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO counter_rollup SELECT %s, 1800, FROM_UNIXTIME(FLOOR(UNIX_TIMESTAMP(UTC_TIMESTAMP()) / 1800) "
            "* 1800) - INTERVAL seq * 1800 SECOND, %s FROM seq_1_to_1488",
            (batches.name, counts),
        )
    before, times = rows_read(batches), []
    for _ in range(10):
        began = time.process_time()
        found = read_series(batches.reader, batches.name, "30d")
        times.append(time.process_time() - began)
    print(f"30 days in {min(times) * 1000:.1f} ms of Python's time, {len(counts)} bytes a row")  # noqa: T201  # a measurement
    assert len(found["at"]) >= 1439
    assert rows_read(batches) - before < 10 * 3000
    assert min(times) < MOST_SECONDS
    batches.run("TRUNCATE batch_counters")
