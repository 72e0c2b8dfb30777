"""A task's events through its join, and back in the order they came in.

The join is given no more of an event than its key and its place: so what waits takes little of the join's memory, and
an event's other columns stay where they are until the master row's are put beside them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from semistream.joins.semi_stream_join import SemiStreamJoin

    from spark_apps.watching.task_counts import TaskCounts

PLACE = "(place)"  # no field has such a name
MOST_HELD_BYTES = 32 * 2**20  # of events and joined rows, before those that wait are joined and all are given out
ROWS_A_LOAD = 50_000


def joined_part(events: pa.Schema, key: Sequence[str]) -> pa.Schema:
    """Name what of an event a join is given."""
    return pa.schema([*(events.field(name) for name in key), pa.field(PLACE, pa.int64(), nullable=False)])


class TaskJoin:
    """Joins a task's events with a join that is used task after task.

    Args:
        join: made for the events' `joined_part`, left-outer.
        schema: the events' columns.
        counts: of the task.
    """

    def __init__(self, join: SemiStreamJoin, schema: pa.Schema, counts: TaskCounts) -> None:
        self.join = join
        self.schema = schema
        self._counts = counts
        self._events: list[pa.RecordBatch] = []
        self._places = 0
        self._bytes = 0
        self._joined: list[pa.RecordBatch] = []

    def joined(self, events: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Join events until none waits, in tables for one load each.

        Tables of the warehouse are clustered by position: rows in the order of the stream are appended, others split
        pages that are full, at twice the cost.
        """
        for batch in events:
            self._feed(batch)
            if self._bytes >= MOST_HELD_BYTES:
                yield from self._all_held()
        yield from self._all_held()

    def events_of(self, tuples: pa.RecordBatch) -> pa.RecordBatch:
        """Give the whole events that the join's tuples stand for."""
        (events,) = pa.Table.from_batches(self._events).take(tuples[PLACE]).combine_chunks().to_batches()
        return events

    def _feed(self, batch: pa.RecordBatch) -> None:
        places = np.arange(self._places, self._places + batch.num_rows)
        part = pa.RecordBatch.from_arrays(
            [*batch.select(self.join.on).columns, pa.array(places)], schema=self.join.stream
        )
        self._events.append(batch)
        self._places += batch.num_rows
        self._bytes += batch.nbytes
        with self._counts.timed("join"):
            joined = self.join.feed(part)
        self._joined += joined
        self._bytes += sum(rows.nbytes for rows in joined)

    def _all_held(self) -> Iterator[pa.Table]:
        """Give all events but those that were shed, each with its master row's columns."""
        with self._counts.timed("join"):
            self._joined += self.join.finish()
            rows = self._side_by_side()
        self._events, self._joined, self._places, self._bytes = [], [], 0, 0
        for first in range(0, rows.num_rows, ROWS_A_LOAD):
            yield rows.slice(first, ROWS_A_LOAD)

    def _side_by_side(self) -> pa.Table:
        """Put what was joined beside its events, which lead."""
        if not self._joined:
            return pa.table({})
        rows = pa.Table.from_batches(self._events)
        found = pa.Table.from_batches(self._joined).combine_chunks()
        where = np.full(rows.num_rows, -1)
        where[found[PLACE].to_numpy()] = np.arange(found.num_rows)
        landed = where >= 0
        if not landed.all():
            rows, where = rows.filter(pa.array(landed)), where[landed]
        found = found.drop_columns([*self.join.on, PLACE]).take(pa.array(where))
        return pa.table([*rows.columns, *found.columns], schema=pa.schema([*rows.schema, *found.schema]))
