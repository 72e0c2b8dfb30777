"""The Kafka sink against a real broker: exact counts, outages, stops."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from generator import Report, SinkError, Stop, StreamSettings, Target, run_stream
from generator.events import Events, make_events
from generator.kafka_sink import KafkaSink
from generator.tally import Tally
from generator.values import recipe
from tests.generator.broker import Broker

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
OUTAGE_SECONDS = 2


def generator(broker: Broker, topic: str, processes: int, *options: str) -> subprocess.Popen[bytes]:
    """Start the generator's command, with a progress line every tenth of a second."""
    where = ["--sink", "kafka", "--bootstrap", broker.bootstrap, "--topic", topic, "--processes", str(processes)]
    command = [sys.executable, "-m", "generator", "run", *where, "--keys", "1000", "--progress", "0.1", *options]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def identifiers(messages: list[tuple[int, bytes, bytes]]) -> list[str]:
    """Return the event ids in a topic, duplicates included."""
    return [json.loads(value)["event_id"] for _, _, value in messages]


def some_events(count: int) -> Events:
    """Return the first events of a stream."""
    return make_events(recipe(StreamSettings(keys=10)), np.arange(count), np.zeros(count, np.int64), tag=0)


@pytest.mark.parametrize("processes", [1, 2])
def test_topic_holds_exactly_the_acknowledged_events(broker: Broker, processes: int) -> None:
    """Each event is in the topic once, its key is its product id, and each key is in one partition only."""
    topic = broker.new_topic(partitions=3)
    report = run_stream(
        StreamSettings(keys=1000, events=30_001, seed=7),
        Target(sink="kafka", bootstrap=broker.bootstrap, topic=topic, processes=processes),
    )
    messages = broker.read(topic)
    assert report.complete
    assert report.acknowledged == len(messages) == len(set(identifiers(messages))) == 30_001
    partitions_of_key = defaultdict(set)
    for partition, key, value in messages:
        assert key == b"%d" % json.loads(value)["product_id"]
        partitions_of_key[key].add(partition)
    assert all(len(partitions) == 1 for partitions in partitions_of_key.values())
    assert set.union(*partitions_of_key.values()) == {0, 1, 2}


def test_simulated_silences_send_no_events(broker: Broker) -> None:
    """Each minute of simulated time has events in its first ten seconds only."""
    topic = broker.new_topic()
    start = datetime(2026, 1, 1, tzinfo=UTC)
    stream = StreamSettings(keys=9, rate=5, duration=300, active=10, silent=50, simulated_from=start)
    report = run_stream(stream, Target(sink="kafka", bootstrap=broker.bootstrap, topic=topic))
    seconds = [datetime.fromisoformat(json.loads(value)["sold_at"]).second for _, _, value in broker.read(topic)]
    assert report.acknowledged == len(seconds) > 0
    assert max(seconds) < 10


def test_malformed_events_arrive_as_they_are(broker: Broker) -> None:
    """The topic holds the requested share of unreadable values, also empty ones, with readable keys."""
    topic = broker.new_topic()
    run_stream(
        StreamSettings(keys=1000, events=5_000, malformed=0.5, seed=7),
        Target(sink="kafka", bootstrap=broker.bootstrap, topic=topic),
    )
    messages = broker.read(topic)
    assert len(messages) == 5_000
    assert all(key.isdigit() for _, key, _ in messages)
    assert sum(value == b"" for _, _, value in messages) == pytest.approx(5_000 * 0.5 / 9, rel=0.25)


class Run:
    """A run in the background; `flowing` is set after some acknowledgements, `late` when the lag is long."""

    def __init__(
        self, broker: Broker, topic: str, stop: Stop | None = None, events: int | None = None, rate: float = 4_000
    ) -> None:
        self.flowing, self.late = threading.Event(), threading.Event()
        self._pool = ThreadPoolExecutor(1)
        self._enough = rate
        self._result = self._pool.submit(
            run_stream,
            StreamSettings(keys=1000, rate=rate, burstiness=1, events=events, seed=7),
            Target(sink="kafka", bootstrap=broker.bootstrap, topic=topic),
            stop=stop,
            on_progress=self._watch,
            progress_seconds=0.1,
        )

    def _watch(self, line: str) -> None:
        found = re.search(r"acknowledged ([\d,]+)  behind schedule ([\d.]+)", line)
        assert found
        if int(found[1].replace(",", "")) > self._enough:
            self.flowing.set()
        if float(found[2]) > OUTAGE_SECONDS:
            self.late.set()

    def report(self, seconds: float) -> Report:
        """Wait for the report for so many seconds at most."""
        try:
            return self._result.result(seconds)
        finally:
            self._pool.shutdown(wait=False)


def test_a_killed_broker_delays_events_and_loses_none(broker: Broker) -> None:
    """When the broker dies and restarts, every event still arrives and is counted once."""
    topic = broker.new_topic()
    run = Run(broker, topic, events=24_000)
    assert run.flowing.wait(30)
    broker.kill()
    assert run.late.wait(60)
    broker.start()
    report = run.report(60)
    found = identifiers(broker.read(topic))
    assert (report.failure, report.acknowledged, report.sent) == (None, 24_000, 24_000)
    assert len(set(found)) == 24_000
    assert len(found) - 24_000 <= report.resent
    assert report.worst_lag > OUTAGE_SECONDS


def test_lag_of_a_slow_stream_grows_while_nothing_is_acknowledged(broker: Broker) -> None:
    """In an outage, progress and report show its whole length as lag, even with few events in flight."""
    stop = Stop()
    run = Run(broker, broker.new_topic(), stop, rate=50)
    try:
        assert run.flowing.wait(30)
        broker.freeze()
        assert run.late.wait(30)
    finally:
        broker.thaw()
        stop.request()
    report = run.report(30)
    assert report.complete
    assert OUTAGE_SECONDS < report.worst_lag < report.seconds


def test_events_whose_sequence_the_broker_lost_are_sent_again(broker: Broker) -> None:
    """After the broker lost acknowledged data, kafka-python fails the batch in flight; the sink sends it again."""
    topic = broker.new_topic(partitions=1)
    run = Run(broker, topic, events=24_000)
    assert run.flowing.wait(30)
    broker.kill()
    broker.lose_tail(topic, 0, share=0.5)
    broker.start()
    report = run.report(60)
    found = {uuid.UUID(identifier).int >> 32 & 0xFFFF for identifier in identifiers(broker.read(topic))}
    lost = set(range(24_000)) - found
    assert (report.failure, report.acknowledged) == (None, 24_000)
    assert report.resent > 0
    assert 0 < len(lost) < 20_000
    assert max(lost) - min(lost) == len(lost) - 1, "only the broker's own loss, one stretch, is missing"


@pytest.mark.parametrize("processes", [1, 2])
def test_sigterm_reports_exactly_what_the_topic_holds(broker: Broker, processes: int) -> None:
    """A run that is stopped flushes, and its report has the topic's count."""
    topic = broker.new_topic()
    with generator(broker, topic, processes, "--rate", "max") as process:
        assert process.stderr is not None
        while b"acknowledged 0 " in process.stderr.readline():
            pass
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=30)
    counted = re.match(rb"acknowledged (\d+) of (\d+) events", output)
    assert counted, errors
    assert process.returncode == 0
    assert int(counted[1]) == int(counted[2]) == len(broker.read(topic)) > 0


def test_a_stop_during_an_outage_counts_acknowledged_events_only(broker: Broker) -> None:
    """A stop in an outage ends the run within seconds, and the report states how many events are uncertain."""
    topic = broker.new_topic()
    stop = Stop()
    run = Run(broker, topic, stop=stop)
    try:
        assert run.flowing.wait(30)
        broker.kill()
        stop.request()
        report = run.report(15)
    finally:
        stop.request()
        broker.start()
    found = set(identifiers(broker.read(topic)))
    assert 0 < report.acknowledged <= len(found) <= report.sent
    assert report.complete or "may or may not have arrived" in str(report)


@pytest.mark.parametrize(("trouble", "processes"), [("frozen", 1), ("frozen", 2), ("deleted", 1)])
def test_sigterm_in_an_outage_ends_the_run_before_airflow_kills_it(
    broker: Broker, trouble: str, processes: int
) -> None:
    """With a frozen broker or a deleted topic, SIGTERM ends the run with a report within five seconds."""
    topic = broker.new_topic()
    with generator(broker, topic, processes, "--rate", "2000", "--burstiness", "1") as process:
        try:
            assert process.stderr is not None
            while b"acknowledged 0 " in process.stderr.readline():
                pass
            broker.freeze() if trouble == "frozen" else broker.delete_topic(topic)
            while not re.search(rb" 0/s .* behind schedule [1-9]", process.stderr.readline()):
                pass
            asked = time.monotonic()
            process.send_signal(signal.SIGTERM)
            output, errors = process.communicate(timeout=90)
            took = time.monotonic() - asked
        finally:
            broker.thaw()
    assert took < 5
    counted = re.match(rb"acknowledged (\d+) of (\d+) events", output)
    assert counted, errors
    assert int(counted[1]) < int(counted[2])
    assert b"may or may not have arrived" in output


def test_a_missing_topic_is_an_error_when_patience_ends(broker: Broker) -> None:
    """The sink waits for the metadata of a missing topic until its timeout; it sends no event."""
    tally = Tally()
    sink = KafkaSink(broker.bootstrap, "never-there", tally, Stop(), patience=1.2)
    began = time.monotonic()
    with pytest.raises(SinkError, match=r"topic: 'never-there' accepts no more events"):
        sink.write(some_events(5))
    assert 1.2 < time.monotonic() - began < 4
    sink.close()
    assert (tally.sent, tally.acknowledged) == (0, 0)


def test_a_broker_that_does_not_answer_is_an_error_when_patience_ends(broker: Broker) -> None:
    """After the timeout, events for a broker that does not answer count as sent and not acknowledged."""
    tally = Tally()
    sink = KafkaSink(broker.bootstrap, broker.new_topic(), tally, Stop(), patience=2)
    try:
        broker.freeze()
        began = time.monotonic()
        sink.write(some_events(5))
        with pytest.raises(SinkError, match="accepts no more events"):
            sink.close()
        assert 2 < time.monotonic() - began < 10
    finally:
        broker.thaw()
    assert (tally.sent, tally.acknowledged) == (5, 0)


def test_a_missing_topic_is_created_on_request_only(broker: Broker) -> None:
    """On request the sink creates the topic with the requested partitions; a second run accepts it."""
    stream = StreamSettings(keys=10, events=10)
    with pytest.raises(SinkError, match=r"topic: 'nowhere' does not exist .* --create-topic"):
        run_stream(stream, Target(sink="kafka", bootstrap=broker.bootstrap, topic="nowhere"))
    target = Target(sink="kafka", bootstrap=broker.bootstrap, topic="made-here", create_partitions=5)
    assert run_stream(stream, target).acknowledged == 10
    assert run_stream(stream, target).acknowledged == 10
    assert len(broker.read("made-here")) == 20
    assert broker.partitions("made-here") == 5


def test_absent_broker_is_named() -> None:
    """The error for an absent broker has the address that was tried."""
    with pytest.raises(SinkError, match=r"bootstrap: no Kafka broker answers at 127\.0\.0\.1:9 "):
        run_stream(StreamSettings(keys=1, events=1), Target(sink="kafka", bootstrap="127.0.0.1:9", topic="sales"))
