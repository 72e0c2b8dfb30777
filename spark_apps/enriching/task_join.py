"""Join a task's events, and return them in the order in which they came.

The join gets only an event's key and its place in the task. So a waiting event takes little of the join's memory. Its
other columns stay where they are until the master row's columns are put beside them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from semistream.joins.semi_stream_join import SemiStreamJoin

    from spark_apps.monitoring.task_counts import TaskCounts

PLACE = "(place)"  # no field has such a name
MOST_HELD_BYTES = 32 * 2**20  # of events and joined rows; then the join finishes what waits, and all rows are output
ROWS_A_LOAD = 50_000


def joined_part(events: pa.Schema, key: Sequence[str]) -> pa.Schema:
    """Return the columns of an event that are passed into a join: its key and its place in the task."""
    return pa.schema([*(events.field(name) for name in key), pa.field(PLACE, pa.int64(), nullable=False)])


class TaskJoin:
    """Joins one task's events with the worker's join.

    Args:
        join: a left-outer join of the events' `joined_part`.
        schema: the events' columns.
        counts: the task's.
        most_held: bytes of events and joined rows that are held before all of them are output.
    """

    def __init__(
        self, join: SemiStreamJoin, schema: pa.Schema, counts: TaskCounts, most_held: int = MOST_HELD_BYTES
    ) -> None:
        self.join = join
        self.schema = schema
        self._counts = counts
        self._most_held = most_held
        self._events: list[pa.RecordBatch] = []
        self._places = 0
        self._bytes = 0
        self._joined: list[pa.RecordBatch] = []

    def joined(self, events: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Join events until none waits, and yield tables for one load each.

        Tables of the warehouse are clustered by position. Rows in the order of the stream are appended. In another
        order they split full pages, which costs twice as much.
        """
        for batch in events:
            self._feed(batch)
            if self._bytes >= self._most_held:
                yield from self._release()
        yield from self._release()

    def events_of(self, tuples: pa.RecordBatch) -> pa.RecordBatch:
        """Return the whole events for tuples of the join."""
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

    def _release(self) -> Iterator[pa.Table]:
        """Finish the join and yield all events that were not shed, each with its master row's columns."""
        with self._counts.timed("join"):
            self._joined += self.join.finish()
            rows = self._side_by_side()
        self._events, self._joined, self._places, self._bytes = [], [], 0, 0
        for first in range(0, rows.num_rows, ROWS_A_LOAD):
            yield rows.slice(first, ROWS_A_LOAD)

    def _side_by_side(self) -> pa.Table:
        """Put the joined columns beside their events, in the order of the events."""
        if not self._joined:
            return pa.table({})
        rows = pa.Table.from_batches(self._events)
        found = pa.Table.from_batches(self._joined).combine_chunks()
        where = np.full(rows.num_rows, -1)
        where[found[PLACE].to_numpy()] = np.arange(found.num_rows)
        kept = where >= 0  # the others were shed
        if not kept.all():
            rows, where = rows.filter(pa.array(kept)), where[kept]
        found = found.drop_columns([*self.join.on, PLACE]).take(pa.array(where))
        return pa.table([*rows.columns, *found.columns], schema=pa.schema([*rows.schema, *found.schema]))
