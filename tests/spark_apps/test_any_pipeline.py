"""A pipeline without sales, and bad input of every kind, through the real stream."""

from __future__ import annotations

import json
import shutil
import threading
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition

from foundation.connections import connect, login
from spark_apps.running.wish import wish_running, wish_stopped
from tests.spark_apps.application import SECONDS, Application, application_on, newest
from tests.topics import read_messages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foundation.settings import Settings

pytestmark = pytest.mark.integration
# Texts that careless code could take for separators, escapes, quotes, statements or nulls.
HOSTILE = (
    "tab\tnewline\nreturn\r\nend", "back\\slash \\n \\t \\\\ \\", "\\N", "NULL", 'double " quotes ""',
    "single ' quotes ''", "comma, semicolon;", "'); DROP TABLE readings_enriched; --", "%s %(x)s {0} $1",
    " spaces around ", "nul \x00 inside", "bell \x07 delete \x7f", "ünïcödé 商品 😀 \u2028 \u202e", "e\u0301 is not é",
    "<b>&amp;</b>", '{"json": [1]}', "# -- /* */",
)  # fmt: skip
MASTER = """CREATE OR REPLACE TABLE weather_station (
    station VARCHAR(80) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL PRIMARY KEY,
    station_key INT UNSIGNED NOT NULL UNIQUE, place VARCHAR(80) NULL, altitude DOUBLE NULL,
    updated_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3))"""
STATIONS = {
    station: (number, f"Ort {number} ø" if number % 3 else None, number / 3 if number % 4 else None)
    for number, station in enumerate((*HOSTILE, *(f"station {number}" for number in range(1000))), start=1)
}
NUMBERS = (0.1, -0.0, 1e22, 0.1 + 0.2, 1.5e300, 2.2250738585072014e-308, -1e-7, 123456789.123456789)
EVENT = "01890f3c-1f2e-7cc3-98c4-dc0c0c07398f"
READING: dict[str, Any] = {"station": "station 7", "celsius": -7.25, "wind": 12, "remark": "fine", "event": EVENT}
AT = "2026-01-02T03:04:05.678Z"
MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678000)  # noqa: DTZ001 - the warehouse's times are UTC without saying so
MEGABYTES = 10_000_000
OUT_OF_MEMORY = 52  # the exit code of Spark's JVM
CONSUMED = "SELECT SUM(next_offset - first_offset) FROM progress WHERE pipeline = 'readings'"


def reading(**changed: object) -> bytes:
    """Return a good event with these changes."""
    return json.dumps({**READING, "taken_at": AT, **changed}, ensure_ascii=False).encode(errors="surrogatepass")


REJECTED: dict[bytes | None, str] = {
    None: "no value",
    b"": "an empty value",
    b"tab\t newline\n quote\" ' backslash\\ nul\x00": "not JSON",
    reading()[:40]: "not JSON",
    b"[1, 2]": "not a JSON object",
    b"{}": "station: missing",
    b"[" * 50_000: "not JSON that we read: nested too deeply",
    b"\x00\xff'\"\\\n\r\t\x1a" * (MEGABYTES // 9): "not UTF-8: byte 1",
    reading().replace(b"fine", b"\xc3("): "not UTF-8",
    reading(remark="\ud800"): "not UTF-8",
    reading(remark="surrogate").replace(b"surrogate", b"\\ud800"): "remark: must be a text of whole characters",
    reading(remark="x" * 256): "remark: must be a text of at most 255 characters",
    reading(remark=None): "remark: must be a text",
    reading(remark={"text": "fine"}): "remark: must be a text",
    reading(station=7): "station: must be a text",
    reading(wind="twelve"): "wind: must be a whole number",
    reading(wind=-1): "wind: must be a whole number of 0 to 4294967295",
    reading(wind=2**32): "wind: must be a whole number of 0 to 4294967295",
    reading(wind=1.5): "wind: must be a whole number",
    reading(celsius="21"): "celsius: must be a number",
    reading(celsius=True): "celsius: must be a number",
    reading(celsius=float("nan")): "not JSON: NaN",
    reading(celsius=float("inf")): "not JSON: Infinity",
    reading(celsius=0).replace(b": 0,", b": 1e999,"): "celsius: must be a finite number",
    reading(celsius=10**400): "celsius: must be a finite number",
    reading(taken_at="2026-02-30T00:00:00Z"): "taken_at: must be a time",
    reading(taken_at="0999-01-01T00:00:00Z"): "taken_at: must be a time",
    reading(taken_at=0): "taken_at: must be a time",
    reading(event=EVENT[1:]): "event: must be a UUID",
    reading()[:-1] + b', "wind": 13}': "wind: there twice",
    reading()[:-1] + b', "celsius": "\\ud800"}': "celsius: there twice",
    reading(celsius="half").replace(b"half", b"\\ud800"): "celsius: must be a number",
    b'{"\\ud800": 1, "\\ud800": 2}': "station: missing",
    reading().replace(b'"wind": 12, ', b""): "wind: missing",
}
UNMATCHED = [reading(station=None), reading(station="nowhere"), reading(station="STATION 7"), reading(station="")]
ENRICHED = [
    *(reading(station=text, remark=text) for text in HOSTILE),
    *(reading(station=text, remark=text).decode().encode("ascii", "backslashreplace") for text in ("station 8",)),
    *(json.dumps({**READING, "station": text, "remark": text, "taken_at": AT}).encode() for text in HOSTILE),
    *(reading(celsius=number) for number in NUMBERS),
    reading(remark=""),
    reading(remark="😀" * 255),
    reading(colour="red", nested={"a": [{"b": None}]}),
    reading()[:-1] + b', "colour": 1, "colour": []}',
    reading(padding="x" * MEGABYTES),
    reading(celsius=21),
]


@pytest.fixture(scope="module")
def application(migrated: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    """Yield the application on the second pipeline, with weather stations as master data."""
    with connect(login("owner", migrated)) as connection, connection.cursor() as cursor:
        cursor.execute(MASTER)
        cursor.executemany(
            "INSERT INTO weather_station (station, station_key, place, altitude) VALUES (%s, %s, %s, %s)",
            [(station, *rest) for station, rest in STATIONS.items()],
        )
    with application_on(migrated, "readings", tmp_path_factory.mktemp("readings")) as made:
        made.start()
        yield made


def enriched(event: dict[str, Any]) -> tuple[object, ...]:
    """Return the row that a look-up by hand gives for an event."""
    key, place, altitude = STATIONS[event["station"]]
    values = (event["station"], float(event["celsius"]), event["wind"], event["remark"], event["event"])
    return (key, *values, place, altitude, MOMENT)


def next_offsets(application: Application) -> dict[int, int]:
    """Return the next offset of each partition by the warehouse."""
    rows = application.rows("SELECT kafka_partition, next_offset FROM progress WHERE pipeline = 'readings'")
    return {int(str(part)): int(str(offset)) for part, offset in rows}


def test_every_kind_of_event_lands_where_it_belongs_and_harms_no_other(application: Application) -> None:
    """Each event is in the table of its kind with all its values, good ones before, between and after bad ones."""
    values: list[bytes | None] = []
    for number, value in enumerate((*REJECTED, *UNMATCHED, *ENRICHED)):
        values += [reading(station=f"station {number}", celsius=number / 7), value]
    application.send(*values)
    application.send(reading(remark="after all"))
    application.wait_until_caught_up()

    topic = application.topic()
    rejected: dict[tuple[object, object], tuple[bytes | None, str]]
    rejected = {position: (value, REJECTED[value]) for position, value in topic.items() if value in REJECTED}
    assert len(rejected) == len(REJECTED)
    position = "kafka_partition, kafka_offset"
    found = {
        (row[0], row[1]): row[2:]
        for row in application.rows(f"SELECT {position}, event, reason FROM readings_rejected")
    }
    assert found.keys() == rejected.keys()
    for place, (event, reason) in found.items():
        assert event == rejected[place][0]
        assert str(reason).startswith(rejected[place][1])

    events = {place: json.loads(value) for place, value in topic.items() if place not in rejected}
    columns = "station_key, station, celsius, wind, remark, event, place, altitude, taken_at"
    rows = application.rows(f"SELECT {position}, {columns} FROM readings_enriched")
    matched = {place: enriched(event) for place, event in events.items() if event["station"] in STATIONS}
    assert len(matched) == len(values) // 2 + len(ENRICHED) + 1
    assert {(row[0], row[1]): repr(row[2:]) for row in rows} == {place: repr(row) for place, row in matched.items()}

    columns = "station, celsius, wind, remark, event, taken_at"
    unmatched = application.rows(f"SELECT {position}, {columns} FROM readings_unmatched")
    assert {(row[0], row[1]): row[2:] for row in unmatched} == {
        place: (event["station"], event["celsius"], event["wind"], event["remark"], event["event"], MOMENT)
        for place, event in events.items()
        if event["station"] not in STATIONS
    }
    assert len(unmatched) == len(UNMATCHED)


def test_the_view_and_the_enriched_topic_have_what_is_computed(application: Application) -> None:
    """The view and the enriched topic have the same computed numbers, and every hostile text unchanged."""
    for celsius, fahrenheit in application.rows("SELECT celsius, fahrenheit FROM readings"):
        assert fahrenheit == pytest.approx(float(str(celsius)) * 9 / 5 + 32)
    messages = read_messages(application.running.kafka_bootstrap, "readings.enriched")
    assert {record.key.decode() for record in messages} >= set(HOSTILE)
    shown = [json.loads(record.value, parse_constant=pytest.fail) for record in messages]
    assert {event["remark"] for event in shown} >= set(HOSTILE)
    for event in shown:
        assert event["place"] == STATIONS[event["station"]][1]
        assert event["altitude"] == STATIONS[event["station"]][2]
        assert event["fahrenheit"] == pytest.approx(event["celsius"] * 9 / 5 + 32)


def test_the_view_keeps_facts_whose_master_row_is_gone(application: Application) -> None:
    """The view still shows an enriched event after its master row was deleted."""
    count = "SELECT COUNT(*) FROM readings"
    ((facts,),) = application.rows(count)
    assert facts
    with connect(login("owner", application.running)) as connection, connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {application.pipeline.master.table}")
        cursor.execute(count)
        assert cursor.fetchall() == ((facts,),)
        connection.rollback()


def test_a_stop_flag_ends_it_between_two_batches_while_the_stream_is_busy(application: Application) -> None:
    """After a stop request the application finishes its batch and leaves the rest for its next start."""
    enough = threading.Event()

    def keep_busy() -> None:
        while not enough.is_set():
            application.send(*[reading()] * 2000)

    sender = threading.Thread(target=keep_busy)
    sender.start()
    try:
        before = application.landed()
        application.wait(lambda: None if application.landed() > before + 4000 else "not busy yet", "a busy stream")
        commits = application.checkpoint / "commits"
        application.wait(lambda: None if any(commits.glob("[0-9]*")) else "not yet", "a batch to be done")
        wish_stopped(login("loader", application.running), "readings", "enrich_stream", by="test")
        done = float(newest(commits).name)
        assert application.wait_for_end() == 0
    finally:
        enough.set()
        sender.join(SECONDS)
    wish_running(login("loader", application.running), "readings", "enrich_stream", by="test")
    assert "stopped as asked" in application.printed()
    assert "broken off" not in application.printed()
    assert "StopAskedError" not in application.printed()  # a stop is no failure, so it prints no stack trace
    assert float(newest(commits).name) <= done + 1
    assert application.landed() < len(application.topic())
    ((consumed,),) = application.rows(CONSUMED)
    assert consumed == application.landed()


def test_events_that_the_topic_lost_before_they_were_read_are_told_and_counted(application: Application) -> None:
    """A start refuses a topic that lost unread events until an operator accepts the loss, which is then counted."""
    if not application.ended:
        application.wait_until_caught_up()
        application.terminate()
    for part in range(3):
        application.send(*[reading()] * 10, partition=part)
    ends = application.ends()
    read = next_offsets(application)
    with closing(KafkaAdminClient(bootstrap_servers=application.running.kafka_bootstrap)) as admin:
        admin.delete_records({TopicPartition("readings", part): ends[part] - 4 for part in (0, 2)})
    lost = {part: ends[part] - 4 - read[part] for part in (0, 2)}
    told = f"lost {lost[0] + lost[2]} events before they were read: {lost[0]} of partition 0, {lost[2]} of partition 2."
    with pytest.raises(AssertionError, match=told):
        application.start()
    assert application.wait_for_end() == 1
    checkpoint = application.running.folders.checkpoints("readings") / str(application.source())
    assert f"remove {checkpoint};" in application.printed()

    shutil.rmtree(checkpoint)
    application.start()
    application.wait(lambda: None if next_offsets(application) == ends else "not yet", "the rest to be read")
    ((consumed,),) = application.rows(CONSUMED)
    assert consumed == application.landed() + lost[0] + lost[2]


def test_of_transactions_what_was_committed_lands_and_nothing_else(application: Application) -> None:
    """A committed event is enriched once and an aborted one never; the offsets of transaction markers have no event."""
    if application.ended:
        application.start()
    producer = KafkaProducer(bootstrap_servers=application.running.kafka_bootstrap, transactional_id="readings")
    with closing(producer):
        producer.init_transactions()
        for remark in ("committed", "aborted", "committed"):
            producer.begin_transaction()
            for part in range(3):
                producer.send("readings", reading(remark=remark), partition=part)
            producer.flush()
            if remark == "aborted":
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    application.send(*[reading(remark="after")] * 10)
    count = "SELECT COUNT(*), COUNT(DISTINCT kafka_partition, kafka_offset) FROM readings_enriched WHERE remark = "
    application.wait(
        lambda: None if application.rows(f"{count} 'after'") == [(10, 10)] else "not yet", "what was sent last"
    )
    application.wait(
        lambda: None if application.rows(f"{count} 'committed'") == [(6, 6)] else "not yet", "what was committed"
    )
    assert application.rows(f"{count} 'aborted'") == [(0, 0)]


def test_large_events_that_were_packed_small_end_it_once_and_land(application: Application) -> None:
    """Compressed events larger than memory end the application once; the next start reads them in small fetches."""

    def wait_for(count: int, remark: str) -> None:
        landed = f"SELECT COUNT(*) FROM readings_enriched WHERE remark = '{remark}'"
        application.wait(lambda: None if application.rows(landed) == [(count,)] else "not yet", f"the {remark}")

    if application.ended:
        application.start()
    application.send(reading(remark="event before"))
    wait_for(1, "event before")
    application.wait_for_pause()
    assert application.terminate() == 0
    count, large = 150, reading(remark="large events", padding="y" * MEGABYTES)
    producer = KafkaProducer(
        bootstrap_servers=application.running.kafka_bootstrap, compression_type="gzip", max_request_size=16_000_000
    )
    with closing(producer):
        for _ in range(count):
            producer.send("readings", large, partition=0).get(SECONDS)
    application.start()
    assert application.wait_for_end() == OUT_OF_MEMORY
    mark = len(application.printed())
    application.start()
    wait_for(count, "large events")
    small, runs = " in small fetches first\n", " runs\n"
    application.wait(lambda: None if application.printed().count(runs, mark) == 2 else "not yet", "the next query")
    application.send(reading(remark="event behind"))
    wait_for(1, "event behind")
    said = application.printed()[mark:]
    assert said.count(small) == 1
    assert said.index(small) < said.index(runs)
