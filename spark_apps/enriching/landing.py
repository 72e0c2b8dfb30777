"""Land events: as rows of the pipeline's tables, in one transaction, and as messages for its enriched topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import compute

from spark_apps.enriching.messages import messages
from spark_apps.enriching.shedding import fields_number
from spark_apps.pipeline.definition import TOPIC_POSITION
from spark_apps.pipeline.expressions import compute_expression
from spark_apps.warehouse.bulk_load import load
from spark_apps.warehouse.uuid_bytes import uuid_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from foundation.connections import Connection
    from spark_apps.monitoring.task_counts import TaskCounts
    from spark_apps.pipeline.definition import Pipeline

Spans = dict[int, tuple[int, int]]  # by Kafka partition: the first offset, and the one after the last
# For each (kept, dropped) pair of tables, `settle` deletes from the second what the first has. Pairs with `shed` come
# first: a task that replays the same event at this moment has its row in `shed` locked. `settle` waits for that task's
# commit, and the pairs that follow see what it landed.
_KEPT_AND_DROPPED = (
    ("enriched", "shed"), ("unmatched", "shed"), ("rejected", "shed"),
    ("enriched", "unmatched"), ("enriched", "rejected"), ("unmatched", "rejected"),
)  # fmt: skip
LISTED = 500  # rows that one statement deletes; from 1,000 MariaDB materialises the IN list and scans our table
_PROGRESS = """
    INSERT INTO progress (pipeline, source, kafka_partition, first_offset, next_offset) VALUES (%s, %s, %s, %s, %s)
    ON DUPLICATE KEY UPDATE first_offset = LEAST(first_offset, VALUES(first_offset)),
                            next_offset = GREATEST(next_offset, VALUES(next_offset))
"""


class Landing:
    """Lands events of one incarnation of a topic. It does not commit: whoever opened the connection does.

    Args:
        connection: one that `bulk_load.loading` opened.
        pipeline: its definition.
        incarnation: the number of the topic's incarnation that the events come from.
        marker: a master column that is NOT NULL: where it is null after the join, nothing matched.
        counts: the task's.
    """

    listed = LISTED

    def __init__(
        self, connection: Connection, pipeline: Pipeline, incarnation: int, marker: str, counts: TaskCounts
    ) -> None:
        self._connection = connection
        self._pipeline = pipeline
        self._incarnation = incarnation
        self._marker = marker
        self._counts = counts

    def land(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """Load joined rows, and yield their messages."""
        pipeline, counts = self._pipeline, self._counts
        known = compute.is_valid(rows[self._marker])
        unmatched = rows.filter(compute.invert(known))
        matched = rows.filter(known) if unmatched.num_rows else rows
        columns, key = pipeline.enriched.columns, pipeline.master.key
        with counts.timed("load"):
            self._load_events("unmatched", unmatched, list(pipeline.source.fields))
            self._load_events("enriched", matched, columns)
        counts.enriched += matched.num_rows
        counts.unmatched += unmatched.num_rows
        counts.without_key += unmatched.num_rows - unmatched.select(key).drop_null().num_rows
        if pipeline.enriched.topic and matched.num_rows:
            with counts.timed("messages"):
                flat = {name: matched[name].combine_chunks() for name in matched.column_names}
                for name, expression in pipeline.enriched.computed.items():
                    flat[name] = compute_expression(expression, flat)
                shown = [*(name for name in key if name not in columns), *columns, *pipeline.enriched.computed]
                json_fields = [name for name, field in pipeline.source.fields.items() if field.kind == "json"]
                yield messages(self._incarnation, key, shown, pa.table(flat), json_fields)

    def reject(self, batch: pa.RecordBatch, rejected: list[tuple[int, str]]) -> None:
        """Load events that cannot be read, each with its reason."""
        if not rejected:
            return
        places = pa.array([place for place, _ in rejected])
        found = batch.select(["partition", "offset", "value"]).take(places)
        rows = pa.table(
            {
                "kafka_partition": found["partition"],
                "kafka_offset": found["offset"],
                "reason": pa.array([reason for _, reason in rejected], pa.string()),
                "event": found["value"],
            }
        )
        with self._counts.timed("load"):
            self._load("rejected", rows, ["reason", "event"])
        self._counts.reject((reason for _, reason in rejected), self._pipeline.source.fields)

    def put_off(self, file: str, events: pa.RecordBatch, oldest: datetime) -> None:
        """Register a shed file as a segment, and the positions of its events as shed.

        Args:
            file: its path below the pipeline's folder of shed events.
            events: its events.
            oldest: none of its events has an earlier Kafka timestamp.
        """
        with self._connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO shed_segment (pipeline, source, file, fields, events, oldest_at) "
                "VALUES (%s, %s, %s, %s, %s, %s)",
                (self._pipeline.name, self._incarnation, file, fields_number(events.schema), events.num_rows, oldest),
            )
            segment = pa.repeat(pa.scalar(cursor.lastrowid), events.num_rows)
        self._load("shed", pa.Table.from_batches([events]).append_column("segment", segment), ["segment"])
        self._counts.shed += events.num_rows

    def end_wait(self, events: pa.RecordBatch) -> None:
        """Delete events from `<pipeline>_shed`; the caller passes them in the order of their positions.

        A batch that ran twice can have shed the same events into two files. Of two tasks that replay these files, the
        second waits here for the first, and holds no lock that the first needs. The common order prevents deadlocks.
        """
        parts, offsets = events["kafka_partition"], events["kafka_offset"]
        with self._counts.timed("load"):
            for part in parts.unique().to_pylist():
                self._delete("shed", part, offsets.filter(compute.equal(parts, part)).to_pylist())

    def settle(self, spans: Spans) -> None:
        """Keep each event in one table only.

        A batch that runs again, or a replay, can see newer master data, other fields or more time. An event that is
        enriched stays enriched. An event that has landed is deleted from `<pipeline>_shed`.

        The ranges of offsets in shed files overlap. So a SELECT finds the rows to delete without locks, and only those
        rows are locked. Otherwise tasks that replay such files would wait for each other.
        """
        name = self._pipeline.name
        with self._counts.timed("load"), self._connection.cursor() as cursor:
            for part, (first, following) in spans.items():
                for kept, dropped in _KEPT_AND_DROPPED:
                    cursor.execute(
                        f"SELECT g.kafka_offset FROM {name}_{dropped} AS g FORCE INDEX (PRIMARY) "  # noqa: S608  # our names
                        f"STRAIGHT_JOIN {name}_{kept} AS s ON s.source = g.source "
                        "AND s.kafka_partition = g.kafka_partition AND s.kafka_offset = g.kafka_offset "
                        "WHERE g.source = %s AND g.kafka_partition = %s AND g.kafka_offset BETWEEN %s AND %s",
                        (self._incarnation, part, first, following - 1),
                    )
                    self._delete(dropped, part, [offset for (offset,) in cursor.fetchall()])

    def advance(self, spans: Spans) -> None:
        """Write to `progress` how far was read: after all rows are loaded, and before `settle`.

        The rows of `progress` stay locked until the commit: a second attempt at the same events waits here, and then
        sees the rows of the first.
        """
        with self._counts.timed("load"), self._connection.cursor() as cursor:
            for part, (first, following) in sorted(spans.items()):
                cursor.execute(_PROGRESS, (self._pipeline.name, self._incarnation, part, first, following))

    def _delete(self, kind: str, part: int, offsets: list[int]) -> None:
        statement = (
            f"DELETE g FROM {self._pipeline.name}_{kind} AS g FORCE INDEX (PRIMARY) "  # a scan would lock more rows
            "WHERE g.source = %s AND g.kafka_partition = %s AND g.kafka_offset IN %s"
        )
        with self._connection.cursor() as cursor:
            for start in range(0, len(offsets), self.listed):
                cursor.execute(statement, (self._incarnation, part, offsets[start : start + self.listed]))

    def _load_events(self, kind: str, rows: pa.Table, columns: list[str]) -> None:
        fields = self._pipeline.source.fields
        for name in columns:
            if name in fields and fields[name].kind == "uuid":
                rows = rows.set_column(rows.column_names.index(name), name, uuid_bytes(rows[name]))
        self._load(kind, rows, columns)

    def _load(self, kind: str, rows: pa.Table, columns: list[str]) -> None:
        number = pa.repeat(pa.scalar(self._incarnation), rows.num_rows)
        placed = rows.select([*TOPIC_POSITION, *columns]).add_column(0, "source", number)
        load(self._connection, f"{self._pipeline.name}_{kind}", placed)


def widen(spans: Spans, partitions: pa.Array, offsets: pa.Array) -> None:
    """Widen each Kafka partition's span so that it covers these offsets."""
    found = pa.table([partitions, offsets], ["partition", "offset"]).group_by("partition")
    for row in found.aggregate([("offset", "min"), ("offset", "max")]).to_pylist():
        first, following = row["offset_min"], row["offset_max"] + 1
        known = spans.get(row["partition"], (first, following))
        spans[row["partition"]] = (min(known[0], first), max(known[1], following))
