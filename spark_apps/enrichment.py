"""What a task does with its share of a batch: read the events, join them with the master data, load what they became.

It runs in Spark's Python workers, on Arrow batches. All that a task writes is one transaction, and every row's primary
key is its event's position: a task that is done twice, or half and then again, leaves what doing it once would.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import compute

from services.warehouse import connect, login
from spark_apps.bulk_load import load
from spark_apps.events import POSITION, EventReader
from spark_apps.expressions import compute_expression
from spark_apps.joiner import borrowed_join
from spark_apps.messages import messages

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from services.warehouse import Connection
    from spark_apps.pipeline import Pipeline

ROWS_A_LOAD = 50_000
_PROGRESS = """
    INSERT INTO progress (pipeline, source, kafka_partition, first_offset, next_offset) VALUES (%s, %s, %s, %s, %s)
    ON DUPLICATE KEY UPDATE first_offset = LEAST(first_offset, VALUES(first_offset)),
                            next_offset = GREATEST(next_offset, VALUES(next_offset))
"""


@dataclass(frozen=True)
class Enricher:
    """The function that Spark calls in each task; it travels to the workers.

    Attributes:
        pipeline: what its file says.
        source: the number of the topic's incarnation.
        snapshot: the master data to join with.
        marker: a column of the master data that is never null: where it is, nothing matched.
    """

    pipeline: Pipeline
    source: int
    snapshot: Path
    marker: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Load what the events became, and yield the messages for the enriched topic."""
        reader = EventReader(self.pipeline.source.fields, self.pipeline.master.key)
        spans: dict[int, tuple[int, int]] = {}
        with (
            connect(login("loader"), local_infile=True) as connection,
            borrowed_join(self.pipeline, reader.schema, self.snapshot) as join,
        ):

            def joined() -> Iterator[pa.RecordBatch]:
                for batch in batches:
                    _note_span(spans, batch)
                    read = reader.read(batch["partition"], batch["offset"], batch["value"])
                    self._load_rejected(connection, batch, read.rejected)
                    yield from join.feed(read.events)
                yield from join.finish()

            for rows in _in_order(joined()):
                yield from self._load(connection, rows)
            self._conclude(connection, spans)

    def _conclude(self, connection: Connection, spans: dict[int, tuple[int, int]]) -> None:
        """Leave each event in one table only, and say how far was read.

        A batch that is done again may meet newer master data: what matches now and did not then is enriched, what was
        enriched once stays so.
        """
        name = self.pipeline.name
        with connection.cursor() as cursor:
            for part, (first, following) in spans.items():
                cursor.execute(
                    f"DELETE u FROM {name}_unmatched AS u JOIN {name}_enriched AS e "  # our own names
                    "USING (source, kafka_partition, kafka_offset) "
                    "WHERE u.source = %s AND u.kafka_partition = %s AND u.kafka_offset BETWEEN %s AND %s",
                    (self.source, part, first, following - 1),
                )
                cursor.execute(_PROGRESS, (name, self.source, part, first, following))

    def _load(self, connection: Connection, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        known = compute.is_valid(rows[self.marker])
        unmatched = rows.filter(compute.invert(known))
        self._load_rows(connection, "unmatched", unmatched, list(self.pipeline.source.fields))
        matched = rows.filter(known) if unmatched.num_rows else rows
        columns = self.pipeline.enriched.columns
        self._load_rows(connection, "enriched", matched, columns)
        if self.pipeline.enriched.topic and matched.num_rows:
            flat = {name: matched[name].combine_chunks() for name in matched.column_names}
            for name, expression in self.pipeline.enriched.computed.items():
                flat[name] = compute_expression(expression, flat)
            key = self.pipeline.master.key
            shown = [*(name for name in key if name not in columns), *columns, *self.pipeline.enriched.computed]
            yield messages(self.source, key, shown, pa.table(flat))

    def _load_rows(self, connection: Connection, kind: str, rows: pa.Table, columns: list[str]) -> None:
        source = pa.repeat(pa.scalar(self.source), rows.num_rows)
        placed = rows.select(["kafka_partition", "kafka_offset", *columns]).add_column(0, "source", source)
        load(connection, f"{self.pipeline.name}_{kind}", placed)

    def _load_rejected(self, connection: Connection, batch: pa.RecordBatch, rejected: list[tuple[int, str]]) -> None:
        rows = [
            (self.source, batch["partition"][i].as_py(), batch["offset"][i].as_py(), reason, batch["value"][i].as_py())
            for i, reason in rejected
        ]
        statement = (
            f"INSERT INTO {self.pipeline.name}_rejected (source, kafka_partition, kafka_offset, reason, event) "  # noqa: S608
            "VALUES (%s, %s, %s, %s, %s) ON DUPLICATE KEY UPDATE source = VALUES(source)"
        )
        with connection.cursor() as cursor:
            cursor.executemany(statement, rows)


def _note_span(spans: dict[int, tuple[int, int]], batch: pa.RecordBatch) -> None:
    """Widen what is known of each Kafka partition's first and next offset."""
    found = pa.table(batch.select(["partition", "offset"]).columns, ["partition", "offset"]).group_by("partition")
    for row in found.aggregate([("offset", "min"), ("offset", "max")]).to_pylist():
        first, following = row["offset_min"], row["offset_max"] + 1
        known = spans.get(row["partition"], (first, following))
        spans[row["partition"]] = (min(known[0], first), max(known[1], following))


def _in_order(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Give a task's rows in the order of the stream, so many for each load.

    A join gives tuples that waited after those that came later. The tables are clustered by position: rows that come in
    that order are appended, others split pages that are full, at twice the cost.
    """
    held = list(batches)
    if held:
        rows = pa.Table.from_batches(held).combine_chunks().sort_by([(name, "ascending") for name in POSITION])
        yield from (rows.slice(first, ROWS_A_LOAD) for first in range(0, rows.num_rows, ROWS_A_LOAD))
