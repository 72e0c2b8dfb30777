"""The status describes the application correctly in one sentence, also when it is dead."""

from __future__ import annotations

import re
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from kafka import KafkaProducer

from foundation.connections import connect, login
from quality.results import record
from spark_apps.monitoring import rollups
from spark_apps.monitoring.batch_counters import ROLLS
from spark_apps.pipeline.definition import read_pipeline
from spark_apps.pipeline.topics import create_topics, incarnation_of
from spark_apps.running.alarms import Bounds, alarms
from spark_apps.running.lease import APPLICATION, KEEPER_OF_STREAM, Lease
from spark_apps.running.starts import record_end, record_start
from spark_apps.running.status import Status, shown, status_of
from spark_apps.running.wish import end_wish, wish_running, wish_stopped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foundation.connections import Login
    from foundation.settings import Settings
    from spark_apps.pipeline.definition import Pipeline

pytestmark = pytest.mark.integration
EVENTS = 40


class Scene:
    """A pipeline with events in its topic, and rows in the tables that its status is made from."""

    def __init__(self, config: Settings, pipeline: Pipeline) -> None:
        self.bootstrap = config.kafka_bootstrap
        self.loader: Login = login("loader", config)
        self.owner: Login = login("owner", config)
        self.pipeline = pipeline
        self.held = ExitStack()

    def status(self) -> Status:
        """Return the pipeline's current status."""
        return status_of(self.loader, self.bootstrap, self.pipeline)

    def hold(self, role: str) -> None:
        """Hold a lease as a program does."""
        self.held.enter_context(Lease(self.loader, self.pipeline.name, role))

    def run(self, statement: str) -> None:
        """Run a statement as the owner."""
        with connect(self.owner) as connection, connection.cursor() as cursor:
            cursor.execute(statement)

    def batch(self, minutes_ago: float, **counts: float) -> None:
        """Insert the counters of a batch."""
        row: dict[str, Any] = {**dict.fromkeys(ROLLS, 0), "rejected_by_reason": {}, "latency_seconds": {}, **counts}
        names = ", ".join(row)
        values = ", ".join("'{}'" if isinstance(value, dict) else str(value) for value in row.values())
        self.run(
            f"INSERT INTO batch_counters (pipeline, source, finished_at, {names}) VALUES ('{self.pipeline.name}', 1, "
            f"UTC_TIMESTAMP(3) - INTERVAL {round(minutes_ago * 60)} SECOND, {values})"
        )
        row["finished_at"] = datetime.now(UTC) - timedelta(minutes=minutes_ago)
        with connect(self.loader) as connection, connection.cursor() as cursor:
            rollups.add(cursor, self.pipeline.name, [row], ROLLS)


@pytest.fixture
def scene(migrated: Settings) -> Iterator[Scene]:
    """Create a topic with forty unread events of two minutes ago, and no wish for the application."""
    pipeline = read_pipeline("sales").model_copy(update={"name": "seen"})
    pipeline = pipeline.model_copy(update={"source": pipeline.source.model_copy(update={"topic": "seen"})})
    created = create_topics(migrated.kafka_bootstrap, pipeline)
    if "seen" in created:
        ago = round((datetime.now(UTC) - timedelta(minutes=2)).timestamp() * 1000)
        with closing(KafkaProducer(bootstrap_servers=migrated.kafka_bootstrap)) as producer:
            for number in range(EVENTS):
                producer.send("seen", str(number).encode(), timestamp_ms=ago, partition=number % 4)
            producer.flush()
    made = Scene(migrated, pipeline)
    for table in ("wish", "program_start", "batch_counters", "counter_rollup", "progress", "quality_check"):
        made.run(f"DELETE FROM {table} WHERE pipeline = 'seen'")
    with made.held:
        yield made


def test_nobody_has_started_it(scene: Scene) -> None:
    """The status of an application that was never started states how to start it."""
    status = scene.status()
    assert (status.kind, status.waiting, status.is_well) == ("never started", EVENTS, True)
    assert 110 < status.behind_seconds < 300
    assert "40 events = 2 min behind" in str(status) or "40 events = 11" in str(status)
    assert str(status).endswith("To start it, trigger the Dag seen.enrich.")


def test_it_runs_and_everything_is_read(scene: Scene) -> None:
    """The status of an application that runs without lag has no advice."""
    wish_running(scene.loader, "seen", "enrich_stream", by="admin")
    scene.hold(APPLICATION)
    scene.hold(KEEPER_OF_STREAM)
    source = incarnation_of(scene.bootstrap, "seen", scene.loader).number
    for part in range(4):
        scene.run(f"INSERT INTO progress VALUES ('seen', {source}, {part}, 0, {EVENTS // 4})")
    scene.batch(0)
    status = scene.status()
    assert (status.kind, status.waiting, status.is_well) == ("running", 0, True)
    assert str(status).startswith("seen: running, wanted by admin since 20")
    assert "; no event waits, last batch " in str(status)
    assert alarms(scene.loader, status, Bounds(1, 0.1, 0.1)) == []


def test_it_is_starting_until_its_first_batch_ends(scene: Scene) -> None:
    """An application that has just been started is starting while its newest batch is from before, then it runs."""
    wish_running(scene.loader, "seen", "enrich_stream", by="admin")
    scene.hold(APPLICATION)
    scene.hold(KEEPER_OF_STREAM)
    scene.batch(5)
    record_start(scene.loader, "seen", "enrich_stream", 1)
    assert scene.status().kind == "starting"
    assert str(scene.status()).endswith("The first batch takes up to half a minute.")
    scene.batch(0)
    assert scene.status().kind == "running"


def test_it_was_stopped_and_says_by_whom_and_why(scene: Scene) -> None:
    """The status of a stopped application states who stopped it; a failure that stopped it is the reason."""
    wish_running(scene.loader, "seen", "enrich_stream", by="admin", run_id="r1")
    end_wish(scene.loader, "seen", "enrich_stream", "r1", "table 'a' does not exist")
    status = scene.status()
    assert (status.kind, status.is_well) == ("stopped", True)
    assert "seen: stopped by enrich_stream since " in str(status)
    assert "(table 'a' does not exist); 40 events = " in str(status)


def test_it_is_wanted_and_starts(scene: Scene) -> None:
    """The status is starting while the keeper holds its lease and the application does not."""
    wish_running(scene.loader, "seen", "enrich_stream", by="admin")
    scene.hold(KEEPER_OF_STREAM)
    assert (scene.status().kind, scene.status().is_well) == ("starting", True)


def test_it_is_wanted_and_nobody_keeps_it(scene: Scene) -> None:
    """The status reports a wanted application without a keeper, as after a kill of the keeper with a paused Dag."""
    wish_running(scene.loader, "seen", "enrich_stream", by="admin")
    status = scene.status()
    assert (status.kind, status.is_well) == ("not kept", False)
    assert "trigger the Dag seen.enrich" in str(status)


def test_it_crashes_again_and_again(scene: Scene) -> None:
    """After three starts within ten minutes the status reports a crash loop, with the last line as the reason."""
    wish_running(scene.loader, "seen", "enrich_stream", by="admin")
    scene.hold(KEEPER_OF_STREAM)
    for number in range(3):
        record_end(scene.loader, record_start(scene.loader, "seen", "enrich_stream", 1), 52, f"out of memory {number}")
    status = scene.status()
    assert (status.kind, status.is_well, status.starts) == ("crash-looping", False, 3)
    assert "3 starts in the last hour. Its last start failed with exit code 52: out of memory 2. It is" in str(status)


def test_it_has_recovered_from_a_crash_loop(scene: Scene) -> None:
    """An application that lands batches again after three crashes runs: its status has no old failure."""
    wish_running(scene.loader, "seen", "enrich_stream", by="admin")
    scene.hold(APPLICATION)
    scene.hold(KEEPER_OF_STREAM)
    for _ in range(3):
        record_end(scene.loader, record_start(scene.loader, "seen", "enrich_stream", 1), 52, "out of memory")
    record_start(scene.loader, "seen", "enrich_stream", 1)
    for table, column in (("program_start", "started_at"), ("wish", "since")):
        scene.run(f"UPDATE {table} SET {column} = {column} - INTERVAL 2 MINUTE WHERE pipeline = 'seen'")
    assert scene.status().kind == "crash-looping"
    scene.batch(0)
    assert scene.status().kind == "running"
    assert "out of memory" not in str(scene.status())


def test_it_is_stopping_while_something_of_it_runs(scene: Scene) -> None:
    """After a stop, a driver that lives is stopping, not stopped; when it has ended, it is stopped."""
    wish_stopped(scene.loader, "seen", "enrich_stream", by="admin")
    with Lease(scene.loader, "seen", APPLICATION):
        assert (scene.status().kind, scene.status().is_well) == ("stopping", True)
        assert "It ends after the batch that it is in." in str(scene.status())
    assert scene.status().kind == "stopped"
    with Lease(scene.loader, "seen", APPLICATION):
        scene.run("UPDATE wish SET since = since - INTERVAL 5 MINUTE WHERE pipeline = 'seen'")
        assert (scene.status().kind, scene.status().is_well) == ("stopping", False)


def test_a_keeper_whose_driver_never_comes_to_work_is_no_start(scene: Scene) -> None:
    """Some minutes after the newest start nothing works on the stream: it is stuck, not starting for ever."""
    wish_running(scene.loader, "seen", "enrich_stream", by="admin")
    scene.hold(KEEPER_OF_STREAM)
    record_start(scene.loader, "seen", "enrich_stream", 1)
    assert scene.status().kind == "starting"
    for table, column in (("program_start", "started_at"), ("wish", "since")):
        scene.run(f"UPDATE {table} SET {column} = {column} - INTERVAL 5 MINUTE WHERE pipeline = 'seen'")
    assert (scene.status().kind, scene.status().is_well) == ("stuck", False)


def test_an_operator_who_starts_it_often_is_no_crash_loop(scene: Scene) -> None:
    """Three starts that an operator wished, each after a stop, are not reported as a crash loop."""
    for _ in range(3):
        wish_stopped(scene.loader, "seen", "enrich_stream", by="admin")
        wish_running(scene.loader, "seen", "enrich_stream", by="admin")
        record_end(scene.loader, record_start(scene.loader, "seen", "enrich_stream", 1), 0, "stopped as asked")
    scene.hold(KEEPER_OF_STREAM)
    status = scene.status()
    assert (status.kind, status.starts, status.recent_starts) == ("starting", 3, 1)


def test_it_starts_again_after_a_failure(scene: Scene) -> None:
    """While a killed application waits for its next start, the status says how it ended and that it comes back."""
    wish_running(scene.loader, "seen", "enrich_stream", by="admin")
    scene.hold(KEEPER_OF_STREAM)
    record_end(scene.loader, record_start(scene.loader, "seen", "enrich_stream", 1), -9, "running")
    says = "Its last start was killed by signal 9. It is started again within a minute."
    assert scene.status().kind == "starting"
    assert says in str(scene.status())


def test_it_is_stuck(scene: Scene) -> None:
    """The status is stuck when the application runs and events wait for minutes, but no batch ends."""
    wish_running(scene.loader, "seen", "enrich_stream", by="admin")
    scene.hold(APPLICATION)
    scene.batch(5)
    status = scene.status()
    assert (status.kind, status.is_well) == ("stuck", False)
    assert "40 events = " in str(status)
    assert "last batch 5 min ago" in str(status)


def test_a_broker_that_is_away_is_said(scene: Scene) -> None:
    """When the broker does not answer, the status reports that and keeps the rest of the sentence."""
    wish_running(scene.loader, "seen", "enrich_stream", by="admin")
    scene.hold(APPLICATION)
    scene.batch(5)
    status = status_of(scene.loader, "127.0.0.1:9", scene.pipeline)
    assert (status.kind, status.is_well, status.waiting) == ("stuck", False, None)
    assert "the lag is not known: no broker answers at 127.0.0.1:9" in str(status)
    assert "make status" in str(status)


def test_a_topic_that_does_not_exist_is_said(scene: Scene) -> None:
    """When the topic does not exist, the status says so instead of blaming the broker."""
    source = scene.pipeline.source.model_copy(update={"topic": "nowhere"})
    status = status_of(scene.loader, scene.bootstrap, scene.pipeline.model_copy(update={"source": source}))
    assert "the lag is not known: topic 'nowhere' does not exist on " in str(status)


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        (
            {"events": 1000, "rejected": 200},
            "20% of the events of 10 minutes are rejected, the bound is 10%: see seen_rejected",
        ),
        (
            {"events": 1000, "unmatched": 300},
            "30% of the events of 10 minutes are unmatched, the bound is 10%: see seen_unmatched",
        ),
        (
            {"shed_damaged_events": 7},
            "7 shed events are in damaged shed files: docs/operating.md says how to restore them",
        ),
        (
            {"snapshot_age_seconds": 7200},
            "the snapshot is old, 2 h, the bound is 1 h: run the Dag seen.refresh",
        ),
        ({"events": 50, "rejected": 50}, None),
    ],
)
def test_what_is_beyond_its_bound_is_an_alarm(scene: Scene, counts: dict[str, float], says: str | None) -> None:
    """A value beyond its bound is an alarm while the stream is wanted; few events give no alarm for a rate."""
    wish_running(scene.loader, "seen", "enrich_stream", by="admin")
    scene.batch(0, **counts)
    assert alarms(scene.loader, scene.status(), Bounds(1, 0.1, 0.1)) == ([says] if says else [])
    wish_stopped(scene.loader, "seen", "enrich_stream", by="admin")
    assert alarms(scene.loader, scene.status(), Bounds(1, 0.1, 0.1)) == []


@pytest.mark.parametrize("grows", [True, False])
def test_a_lag_that_grows_for_ten_minutes_is_an_alarm(scene: Scene, grows: bool) -> None:  # noqa: FBT001
    """A lag that grows for ten minutes, up to now, is an alarm; not if it was lower in the second half than before."""
    wish_running(scene.loader, "seen", "enrich_stream", by="admin")
    for minute in range(10):
        scene.batch(9.5 - minute, lag_events=4 * minute if grows or minute != 5 else 0)
    found = alarms(scene.loader, scene.status(), Bounds(1, 0.1, 0.1))
    says = "the lag grows for 10 minutes, from 0 to 40 events: add cores or memory, or wait for the end of the burst"
    assert found == ([says] if grows else [])
    quick = replace(scene.status(), behind_seconds=1.0)
    assert alarms(scene.loader, quick, Bounds(1, 0.1, 0.1)) == [], "a stream that is a second behind keeps up"


def test_a_paused_dag_is_an_alarm_while_the_stream_is_wanted(scene: Scene) -> None:
    """A paused Dag of a wanted stream is an alarm with its name; that of a stopped stream is none."""
    wish_running(scene.loader, "seen", "enrich_stream", by="admin")
    scene.hold(APPLICATION)
    (found,) = alarms(scene.loader, scene.status(), Bounds(1, 0.1, 0.1), paused_dag="seen.enrich")
    assert found.startswith("Dag seen.enrich is paused")
    assert found.endswith("unpause it")
    wish_stopped(scene.loader, "seen", "enrich_stream", by="admin")
    assert alarms(scene.loader, scene.status(), Bounds(1, 0.1, 0.1), paused_dag="seen.enrich") == []


def test_the_newest_check_of_each_suite_counts(scene: Scene) -> None:
    """A failed check is an alarm until a newer check of the same suite meets all expectations, wanted stream or not."""
    for suite, failures in (("rows", ["a: NOT met"]), ("master", ["a: NOT met"]), ("rows", [])):
        record(scene.loader, "seen", suite, 2, failures)
    (found,) = alarms(scene.loader, scene.status(), Bounds(1, 0.1, 0.1))
    assert re.match(r"the quality check of master failed at 20\d\d-.* UTC, 1 of 2 expectations are not met", found)
    assert "(a: NOT met): correct the rows" in found
    record(scene.loader, "seen", "master", 2, [])
    assert alarms(scene.loader, scene.status(), Bounds(1, 0.1, 0.1)) == []


def test_durations_are_for_people() -> None:
    """A duration is shown in the largest unit that is still precise enough."""
    assert [shown(seconds) for seconds in (0.4, 119, 121, 7000, 8000)] == ["0 s", "119 s", "2 min", "117 min", "2 h"]
