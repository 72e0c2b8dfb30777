"""A pipeline whose tasks a test runs by itself, over a page file that the test can make slow."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from semistream import PageFile

from foundation.connections import connect, login
from spark_apps.enriching import shedding
from spark_apps.enriching.enricher import Enricher
from spark_apps.enriching.landing import Landing
from spark_apps.enriching.worker_join import Joins, construct_join
from spark_apps.events.reader import EventReader
from spark_apps.pipeline.join_plan import JoinPlan
from tests.spark_apps.application import sale

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from semistream import SemiStreamJoin
    from semistream.relation import Page, Relation

    from spark_apps.enriching.report import TaskReport
    from spark_apps.pipeline.definition import Pipeline
    from spark_apps.pipeline.topics import TopicIncarnation

PRODUCTS = 280  # of the 300 products that are sold, so some sales match nothing
KINDS = ("enriched", "unmatched", "rejected", "shed")
MUCH_TIME = 60.0
Position = tuple[int, int]


def few_cached(pipeline: Pipeline, events: pa.Schema, relation: Relation, plan: JoinPlan) -> SemiStreamJoin:
    """Make a join for which most tuples wait."""
    return construct_join(pipeline, events, relation, replace(plan, front_stage=0.0, single_rows_below=0.0))


@dataclass
class SlowStore:
    """A master store whose pages take a set time to read."""

    seconds: float = 0.0

    def open(self, path: Path) -> PageFile:
        """Open a page file in this store."""
        store = self

        class SlowPageFile(PageFile):
            def _read(self, page: int) -> tuple[Page, int]:
                time.sleep(store.seconds)
                return super()._read(page)

        return SlowPageFile(path)


@dataclass
class Stream:
    """A pipeline that sheds, the events that were sent to it, and its warehouse."""

    pipeline: Pipeline
    snapshot: Path
    root: Path
    incarnation: TopicIncarnation
    store: SlowStore = field(default_factory=SlowStore)
    make_landing: type[Landing] = Landing
    sent: dict[int, list[bytes]] = field(default_factory=lambda: {0: [], 1: []})
    messages: Counter[Position] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.joins = Joins(few_cached, self.store.open)

    def another_worker(self) -> None:
        """Run the next task in a worker without anything in memory."""
        self.joins.drop()

    def have_time(self) -> None:
        """Make the store fast, and give a batch more time than two tasks need that wait for each other."""
        self.store.seconds = 0.0
        self.pipeline = self.pipeline.model_copy(update={"batch_seconds": MUCH_TIME})

    def arrive(self, partition: int, count: int) -> range:
        """Add sales, one in a hundred unreadable, and return their offsets."""
        values = self.sent[partition]
        first = len(values)
        values += [b"garbage" if n % 100 == 7 else sale(n) for n in range(first, first + count)]
        return range(first, first + count)

    def task(
        self, partition: int, offsets: Sequence[int], job: str | None = None
    ) -> tuple[Iterator[pa.RecordBatch], list[TaskReport]]:
        """Start a task on events; it advances as its messages are consumed."""
        reported: list[TaskReport] = []
        where = (self.pipeline, self.incarnation, self.snapshot, JoinPlan(), "product_key", self.root)
        enricher = Enricher(*where, job, reported.append, self.joins, self.make_landing)
        now = datetime.now(UTC)
        batch = pa.RecordBatch.from_pydict(
            {
                "partition": pa.array([partition] * len(offsets), pa.int32()),
                "offset": pa.array(offsets, pa.int64()),
                "value": pa.array([self.sent[partition][offset] for offset in offsets], pa.binary()),
                "timestamp": pa.array([now] * len(offsets), pa.timestamp("us", "UTC")),
            }
        )
        return enricher(iter([batch] if len(offsets) else [])), reported

    def run(self, partition: int = 0, offsets: Sequence[int] = (), job: str | None = None) -> TaskReport:
        """Run a task to its end."""
        task, reported = self.task(partition, offsets, job)
        for batch in task:
            for headers in batch["headers"].to_pylist():
                told = {header["key"]: int(header["value"]) for header in headers}
                self.messages[told["partition"], told["offset"]] += 1
        (report,) = reported
        return report

    def replay_all(self) -> None:
        """Run replay jobs until no event waits, and remove their segments as the driver does."""
        for number in range(1000):
            if not self.waiting().segments:
                return
            self.remove(self.run(job=f"job {number}").replayed_segments)
        pytest.fail(f"{self.waiting()} after 1000 jobs")

    def waiting(self) -> shedding.Waiting:
        """Return the events that wait, as the driver counts them."""
        schema = EventReader(self.pipeline.source.fields, self.pipeline.master.key).schema
        with connect(login("loader")) as connection:
            return shedding.waiting(connection, self.pipeline.name, schema)

    def remove(self, segments: list[int]) -> None:
        """Remove segments as the driver does after a job."""
        if segments:
            with connect(login("loader")) as connection:
                shedding.remove_replayed(connection, self.root, segments)

    def sweep(self) -> None:
        """Remove files without a row in the warehouse, as a start does."""
        with connect(login("loader")) as connection:
            shedding.sweep(connection, self.root, self.pipeline.name)

    def files(self) -> list[Path]:
        """Return all files of the shed store."""
        return sorted(path for path in self.root.rglob("*") if path.is_file())

    def query(self, statement: str) -> list[tuple[int, ...]]:
        """Query the warehouse."""
        with connect(login("reader")) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def positions(self, kind: str) -> set[Position]:
        """Return the positions of the events in a table."""
        rows = self.query(f"SELECT kafka_partition, kafka_offset FROM {self.pipeline.name}_{kind}")
        return {(partition, offset) for partition, offset in rows}

    def assert_accounted(self) -> None:
        """Check with the accounting query that each event is in exactly one table."""
        name = self.pipeline.name
        tables = " UNION ALL ".join(f"SELECT kafka_partition, kafka_offset FROM {name}_{kind}" for kind in KINDS)
        ((consumed, landed, distinct),) = self.query(
            f"SELECT (SELECT COALESCE(SUM(next_offset - first_offset), 0) FROM progress WHERE pipeline = '{name}'), "
            f"COUNT(*), COUNT(DISTINCT kafka_partition, kafka_offset) FROM ({tables}) AS every"
        )
        assert consumed == landed == distinct

    def assert_all_landed(self) -> None:
        """Compare each row with a look-up by hand, and check that no event waits on disk or in the warehouse."""
        self.assert_accounted()
        numbers = {
            (part, offset): offset % 300 + 1 for part, values in self.sent.items() for offset in range(len(values))
        }
        bad = {position for position in numbers if position[1] % 100 == 7}
        known = {position: n for position, n in numbers.items() if position not in bad and n <= PRODUCTS}
        rows = self.query(
            f"SELECT kafka_partition, kafka_offset, product_key, price_cents FROM {self.pipeline.name}_enriched"
        )
        assert {(row[0], row[1]): row[2:] for row in rows} == {at: (n + 1000, n * 5) for at, n in known.items()}
        assert self.positions("rejected") == bad
        assert self.positions("unmatched") == numbers.keys() - bad - known.keys()
        assert self.positions("shed") == set()
        assert self.messages.keys() == known.keys()
        assert self.files() == []
        assert self.query(f"SELECT 1 FROM shed_segment WHERE pipeline = '{self.pipeline.name}'") == []
