"""Where events land: rows of the pipeline's tables and messages of its enriched topic, written in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import compute

from spark_apps.enriching.messages import messages
from spark_apps.enriching.shedding import fields_number
from spark_apps.pipeline.expressions import compute_expression
from spark_apps.warehouse.bulk_load import load
from spark_apps.warehouse.uuid_bytes import uuid_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from foundation.connections import Connection
    from spark_apps.pipeline.definition import Pipeline
    from spark_apps.watching.task_counts import TaskCounts

Spans = dict[int, tuple[int, int]]  # of each Kafka partition: the first offset, and the one behind the last
# An event that is in one of the first is not to be in the second of a pair. What was shed comes first: whoever takes
# the event back at the same time is waited for there, so that what it made of it is seen by the others.
_STAYS_AND_GOES = (
    ("enriched", "shed"), ("unmatched", "shed"), ("rejected", "shed"),
    ("enriched", "unmatched"), ("enriched", "rejected"), ("unmatched", "rejected"),
)  # fmt: skip
_LISTED = 500  # rows that one statement removes: of 1,000 and more the server makes a table, and reads all of ours
_PROGRESS = """
    INSERT INTO progress (pipeline, source, kafka_partition, first_offset, next_offset) VALUES (%s, %s, %s, %s, %s)
    ON DUPLICATE KEY UPDATE first_offset = LEAST(first_offset, VALUES(first_offset)),
                            next_offset = GREATEST(next_offset, VALUES(next_offset))
"""


class Landing:
    """Lands events of one source over a connection; whoever opened the connection commits.

    Args:
        connection: to the warehouse (`bulk_load.loading`).
        pipeline: what its file says.
        source: the number of the topic's incarnation that the events came from.
        marker: a column of the master data that is never null: where it is, nothing matched.
        counts: of the task.
    """

    def __init__(
        self, connection: Connection, pipeline: Pipeline, source: int, marker: str, counts: TaskCounts
    ) -> None:
        self._connection = connection
        self._pipeline = pipeline
        self._source = source
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
                yield messages(self._source, key, shown, pa.table(flat))

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
        """Write down a file of the shed store, a time that no event of it is older than, and where they came from."""
        with self._connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO shed_segment (pipeline, source, file, fields, events, oldest_at) "
                "VALUES (%s, %s, %s, %s, %s, %s)",
                (self._pipeline.name, self._source, file, fields_number(events.schema), events.num_rows, oldest),
            )
            segment = pa.repeat(pa.scalar(cursor.lastrowid), events.num_rows)
        self._load("shed", pa.Table.from_batches([events]).append_column("segment", segment), ["segment"])
        self._counts.shed += events.num_rows

    def pick_up(self, events: pa.RecordBatch) -> None:
        """Say of events that were shed, and come in the order of their positions, that they wait no more.

        A batch that is done again may have shed them once more, into another file. Whoever takes that back waits here,
        where it holds nothing that others wait for; the common order keeps two from waiting for each other.
        """
        parts, offsets = events["kafka_partition"], events["kafka_offset"]
        with self._counts.timed("load"):
            for part in parts.unique().to_pylist():
                self._remove("shed", part, offsets.filter(compute.equal(parts, part)).to_pylist())

    def settle(self, spans: Spans) -> None:
        """Leave each event in one table only.

        An event that is met again, in a batch that is done again or taken back, may meet newer master data, other
        fields, or more time: what is enriched once stays so, and what has landed waits no more.

        Files of the shed store have events of the same stretch of offsets. So rows are looked for without locks, or
        tasks that take such files back would wait for each other, and only what is to go is locked.
        """
        name = self._pipeline.name
        with self._counts.timed("load"), self._connection.cursor() as cursor:
            for part, (first, following) in spans.items():
                for stays, goes in _STAYS_AND_GOES:
                    cursor.execute(
                        f"SELECT g.kafka_offset FROM {name}_{goes} AS g FORCE INDEX (PRIMARY) "  # noqa: S608  # our names
                        f"STRAIGHT_JOIN {name}_{stays} AS s ON s.source = g.source "
                        "AND s.kafka_partition = g.kafka_partition AND s.kafka_offset = g.kafka_offset "
                        "WHERE g.source = %s AND g.kafka_partition = %s AND g.kafka_offset BETWEEN %s AND %s",
                        (self._source, part, first, following - 1),
                    )
                    self._remove(goes, part, [offset for (offset,) in cursor.fetchall()])

    def advance(self, spans: Spans) -> None:
        """Say how far was read, after all rows and before `settle`.

        The rows of `progress` stay locked: a task that does the same events again waits here until this one's rows can
        be seen.
        """
        with self._counts.timed("load"), self._connection.cursor() as cursor:
            for part, (first, following) in sorted(spans.items()):
                cursor.execute(_PROGRESS, (self._pipeline.name, self._source, part, first, following))

    def _remove(self, kind: str, part: int, offsets: list[int]) -> None:
        statement = (
            f"DELETE g FROM {self._pipeline.name}_{kind} AS g FORCE INDEX (PRIMARY) "  # a scan would lock others' rows
            "WHERE g.source = %s AND g.kafka_partition = %s AND g.kafka_offset IN %s"
        )
        with self._connection.cursor() as cursor:
            for start in range(0, len(offsets), _LISTED):
                cursor.execute(statement, (self._source, part, offsets[start : start + _LISTED]))

    def _load_events(self, kind: str, rows: pa.Table, columns: list[str]) -> None:
        for name in columns:
            if self._pipeline.source.fields.get(name) == "uuid":
                rows = rows.set_column(rows.column_names.index(name), name, uuid_bytes(rows[name]))
        self._load(kind, rows, columns)

    def _load(self, kind: str, rows: pa.Table, columns: list[str]) -> None:
        source = pa.repeat(pa.scalar(self._source), rows.num_rows)
        placed = rows.select(["kafka_partition", "kafka_offset", *columns]).add_column(0, "source", source)
        load(self._connection, f"{self._pipeline.name}_{kind}", placed)


def widen(spans: Spans, partitions: pa.Array, offsets: pa.Array) -> None:
    """Widen what is known of each Kafka partition's first and next offset."""
    found = pa.table([partitions, offsets], ["partition", "offset"]).group_by("partition")
    for row in found.aggregate([("offset", "min"), ("offset", "max")]).to_pylist():
        first, following = row["offset_min"], row["offset_max"] + 1
        known = spans.get(row["partition"], (first, following))
        spans[row["partition"]] = (min(known[0], first), max(known[1], following))
