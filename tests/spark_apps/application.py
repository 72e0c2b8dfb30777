"""The streaming application as a process that belongs to one test, which can kill it."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import psutil
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from foundation import spark_launch
from foundation.connections import connect, login
from foundation.errors import NotInTimeError
from foundation.settings import ROOT
from services.waiting import wait_until
from spark_apps.master.publish import publish
from spark_apps.master.ranking import build_ranking
from spark_apps.master.tables import prepare
from spark_apps.pipeline.definition import read_pipeline
from spark_apps.pipeline.tables import create_tables
from spark_apps.pipeline.topics import create_topics
from spark_apps.running.checkpoint import has_open_batch
from tests.topics import read_topic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foundation.settings import Settings
    from spark_apps.pipeline.definition import Pipeline

SECONDS = 240.0
KINDS = ("enriched", "unmatched", "rejected")
PIPELINES = ROOT / "tests" / "pipelines"
ENRICH_STREAM = ROOT / "spark_apps" / "enrich_stream.py"


def spark_submit(running: Settings, pipeline: str, program: Path = ENRICH_STREAM) -> list[str]:
    """Return the command line that starts the application on a pipeline."""
    return spark_launch.submit(program, "--pipeline", pipeline, master=running.spark_master, jars=running.jars)


@contextmanager
def application_on(migrated: Settings, name: str, folder: Path, page_rows: int | None = None) -> Iterator[Application]:
    """Yield the application, not yet started, on a pipeline whose master data is published; end it afterwards."""
    owner, pipeline = login("owner", migrated), read_pipeline(name, PIPELINES)
    create_topics(migrated.kafka_bootstrap, pipeline)
    create_tables(owner, pipeline)
    prepare(owner, pipeline.master)
    publish(owner, pipeline.master, build_ranking(owner, pipeline.master), migrated.folders.snapshots(name), page_rows)
    made = Application(migrated, pipeline, folder)
    yield made
    if not made.ended:
        made.kill()


class Application:
    """Start and end enrich_stream for a pipeline, send events to it, and read the resulting rows."""

    def __init__(self, running: Settings, pipeline: Pipeline, folder: Path) -> None:
        self.running = running
        self.pipeline = pipeline
        self.output = folder / "output"
        folder.mkdir(exist_ok=True)
        self.output.touch()
        self.program = ENRICH_STREAM
        self.variables: dict[str, str] = {}  # more of its environment
        self._process: subprocess.Popen[bytes] | None = None
        self._sent = 0

    def start(self) -> None:
        """Submit the application and wait until its query runs."""
        environment = {
            **os.environ,
            **spark_launch.environment(),
            "FRESHET_PIPELINES": str(PIPELINES),
            **self.variables,
        }
        seen = self.printed().count(" runs\n")
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                spark_submit(self.running, self.pipeline.name, self.program),
                env=environment,
                stdout=output,
                stderr=output,
            )
        self.wait(lambda: None if self.printed().count(" runs\n") > seen else self._obstacle(), "the query to run")

    def printed(self) -> str:
        """Return everything that the application has printed so far."""
        return self.output.read_text(errors="replace")

    def processes(self, word: str) -> list[psutil.Process]:
        """Return the application's processes whose command line contains a word."""
        assert self._process
        family = [psutil.Process(self._process.pid), *psutil.Process(self._process.pid).children(recursive=True)]
        return [process for process in family if word in " ".join(_words(process))]

    def kill(self) -> None:
        """Kill -9 the driver and all its child processes, as a crash of the machine does."""
        self.kill_processes("")
        assert self._process
        self._process.wait()

    def kill_processes(self, word: str) -> None:
        """Kill -9 all processes of the application whose command line contains a word."""
        found = self.processes(word)
        assert found
        for process in found:
            with suppress(psutil.NoSuchProcess):  # Spark ends workers that wait for work
                process.kill()
        psutil.wait_procs(found, SECONDS)

    def terminate(self) -> int:
        """Send SIGTERM to the driver program, and return the exit code of spark-submit."""
        self.driver().terminate()
        return self.wait_for_end()

    def wait_for_end(self) -> int:
        """Wait until the application has ended, and return its exit code."""
        assert self._process
        return self._process.wait(SECONDS)

    def wait_for_pause(self) -> None:
        """Wait until no batch is in progress."""
        topic = self.pipeline.source.topic
        self.wait(lambda: "a batch is under way" if has_open_batch(self.checkpoint, topic) else None, "a pause")

    def lose_newest_commit(self) -> None:
        """Kill the application between batches and remove the newest commit, so that Spark runs that batch again."""
        self.wait_for_pause()
        self.kill()
        commit = newest(self.checkpoint / "commits")
        commit.unlink()
        commit.with_name(f".{commit.name}.crc").unlink(missing_ok=True)

    @property
    def checkpoint(self) -> Path:
        """Return the folder of the newest source's checkpoint."""
        return newest(self.running.folders.checkpoints(self.pipeline.name))

    def driver(self) -> psutil.Process:
        """Return the process of Freshet's own program; its parent is Spark's process."""
        found = self.processes(self.program.name)
        (driver,) = (each for each in found if Path(_words(each)[0]).name.startswith("python"))
        return driver

    @property
    def ended(self) -> bool:
        """Tell whether the application has ended."""
        return self._process is None or self._process.poll() is not None

    def send(self, *values: bytes | None, partition: int | None = None) -> None:
        """Send messages to the pipeline's topic, all to one partition if it is given."""
        producer = KafkaProducer(
            bootstrap_servers=self.running.kafka_bootstrap, linger_ms=20, max_request_size=16_000_000
        )
        with closing(producer):
            topic = self.pipeline.source.topic
            # kafka-python wants a key beside a message without a value.
            futures = [
                producer.send(topic, value, key=b"none" if value is None else None, partition=partition)
                for value in values
            ]
            for future in futures:
                future.get(SECONDS)

    def send_sales(self, count: int) -> None:
        """Send this many sales, one product after the other."""
        first, self._sent = self._sent, self._sent + count
        self.send(*[sale(number) for number in range(first, self._sent)])

    def wait_until_caught_up(self) -> None:
        """Wait until every message of the topic is in the warehouse."""
        self.wait(self._behind, "every event to land")

    def wait(self, met: object, what: str) -> None:
        """Wait for a condition; after a timeout raise an error with the application's last output."""
        try:
            wait_until(met, what=what, seconds=SECONDS)  # type: ignore[arg-type]
        except NotInTimeError as error:
            error.add_note(self.printed()[-3000:])
            raise

    def landed(self, where: str = "TRUE") -> int:
        """Count the rows of the three tables."""
        name = self.pipeline.name
        tables = " UNION ALL ".join(f"SELECT 1 FROM {name}_{kind} WHERE {where}" for kind in KINDS)
        return len(self.rows(tables))

    def source(self) -> int:
        """Return the source number of the current topic; 0 when the application does not know it yet."""
        topic = self.pipeline.source.topic
        with closing(KafkaAdminClient(bootstrap_servers=self.running.kafka_bootstrap)) as admin:
            (described,) = admin.describe_topics([topic])
        found = self.rows(f"SELECT source FROM source WHERE topic = '{topic}' AND topic_id = '{described['topic_id']}'")
        return int(str(found[0][0])) if found else 0

    def make_topic_again(self) -> None:
        """Delete the pipeline's topic and create another one with the same name."""
        with closing(KafkaAdminClient(bootstrap_servers=self.running.kafka_bootstrap)) as admin:
            admin.delete_topics([self.pipeline.source.topic])
        create_topics(self.running.kafka_bootstrap, self.pipeline)

    def rows(self, query: str) -> list[tuple[object, ...]]:
        """Query the warehouse."""
        with connect(login("reader", self.running)) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())

    def topic(self) -> dict[tuple[int, int], bytes]:
        """Return all messages of the pipeline's topic by their position."""
        return read_topic(self.running.kafka_bootstrap, self.pipeline.source.topic)

    def ends(self) -> dict[int, int]:
        """Return the next offset of each partition of the pipeline's topic."""
        with closing(KafkaConsumer(bootstrap_servers=self.running.kafka_bootstrap, group_id=None)) as consumer:
            topic = self.pipeline.source.topic
            parts = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
            return {part.partition: end for part, end in consumer.end_offsets(parts).items()}

    def _obstacle(self) -> str:
        assert not self.ended, self.printed()[-3000:]
        return "not yet"

    def _behind(self) -> str | None:
        assert not self.ended, self.printed()[-3000:]
        landed, sent = self.landed(f"source = {self.source()}"), len(self.topic())
        return None if landed == sent else f"{landed} of {sent} events have landed"


def newest(folder: Path) -> Path:
    """Return the file or folder with the highest number."""
    return max((path for path in folder.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))


def _words(process: psutil.Process) -> list[str]:
    """Return the process' command line as one text; empty if the process has ended or is a zombie."""
    try:
        return process.cmdline() or [""]
    except psutil.NoSuchProcess:
        return [""]


def sale(number: int) -> bytes:
    """Return a sale whose every field follows from its number."""
    event = {
        "event_id": str(UUID(int=number)),
        "product_id": number % 300 + 1,
        "quantity": number % 7 + 1,
        "store_id": number % 5,
        "sold_at": "2026-01-02T03:04:05.678Z",
    }
    return json.dumps(event).encode()
