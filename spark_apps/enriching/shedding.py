"""Shed events, for which their batch has no time: stored on disk, registered in the warehouse, replayed later.

    shed/<pipeline>/<one task's folder>/<number>-<events>.shed    a segment: a file of semistream's shed store
    shed_segment                                                  its row in the warehouse, while it is needed
    <pipeline>_shed                                               the positions of the events that wait

A file is complete and synced before its row is written, in the transaction of the task that sheds. The transaction that
replays a segment marks its row. Row and file are removed when the Spark job of that replay is done, because only then
are its messages in the enriched topic. So after a crash every row has its file, and an event that is replayed twice
lands at the same position both times. The next start removes files without a row. A file that is missing or damaged is
set aside: the column `damage` of its row has the reason, and its events keep waiting.
"""

from __future__ import annotations

import fcntl
import os
import uuid
import zlib
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from semistream import LoadShedder, ShedStore
from semistream.durability import fsync_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa
    from semistream.waiting_tuples import WaitingTuples

    from foundation.connections import Connection


@dataclass(frozen=True)
class Segment:
    """A file of shed events, as its row describes it."""

    number: int
    incarnation: int
    file: str
    events: int
    oldest_at: datetime

    def read(self, root: Path, schema: pa.Schema) -> pa.RecordBatch:
        """Read the segment's events from its file."""
        folder, _, name = self.file.partition("/")
        return ShedStore(root / folder, schema).read(name)


@dataclass(frozen=True)
class Waiting:
    """What waits in a pipeline's shed store.

    Attributes:
        segments: the number of segments that can be replayed.
        events: the number of events that wait.
        damaged: how many of those events are in segments that were set aside.
        oldest_at: when the oldest of those events came; None if no event waits.
    """

    segments: int = 0
    events: int = 0
    damaged: int = 0
    oldest_at: datetime | None = None

    @property
    def oldest_seconds(self) -> float:
        """The age of the oldest event that waits, 0 if none does."""
        if self.oldest_at is None:
            return 0.0
        return (datetime.now(UTC) - self.oldest_at.replace(tzinfo=UTC)).total_seconds()


class TaskShedder:
    """Sheds events of one task attempt into a folder of its own, created when the first event is shed.

    Args:
        root: the pipeline's folder of shed events.
        store: creates the shed store in the attempt's folder.
    """

    def __init__(self, root: Path, store: Callable[[Path], ShedStore]) -> None:
        self._root = root
        self._store = store
        self._shedder: LoadShedder | None = None
        self._held = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def shed(self, waiting: WaitingTuples) -> None:
        """Shed a portion of a join's waiting tuples."""
        if self._shedder is None:
            folder = self._held.enter_context(_own_folder(self._root))
            self._shedder = LoadShedder(self._store(folder))
        self._shedder.shed_portion(waiting)


class EventStore(ShedStore):
    """A shed store that keeps the whole events for a join's tuples, and reports each file that it has written.

    Args:
        folder: the task attempt's.
        schema: the columns of the events.
        events_of: returns the whole events for tuples of the join.
        register: is called with each file and its events when they are on disk.
    """

    def __init__(
        self,
        folder: Path,
        schema: pa.Schema,
        events_of: Callable[[pa.RecordBatch], pa.RecordBatch],
        register: Callable[[str, pa.RecordBatch], None],
    ) -> None:
        super().__init__(folder, schema)
        self._folder = folder
        self._events_of = events_of
        self._register = register

    def add(self, tuples: pa.RecordBatch) -> None:
        """Store the tuples' events, then register the file."""
        events = self._events_of(tuples)
        super().add(events)
        self._register(f"{self._folder.name}/{self.names[-1]}", events)


@contextmanager
def _own_folder(root: Path) -> Iterator[Path]:
    """Create a folder and lock it during the block, so that `sweep` leaves it alone."""
    root.mkdir(parents=True, exist_ok=True)
    folder = root / uuid.uuid4().hex
    folder.mkdir()
    for changed in (root, root.parent, root.parent.parent):  # any of them can be new
        fsync_directory(changed)
    with _locked(folder):
        yield folder


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder (flock), or raise BlockingIOError; the kernel releases the lock when this process ends."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def claim(connection: Connection, pipeline: str, schema: pa.Schema, job: str) -> Segment | None:
    """Mark the segment that has waited longest as replayed by this job, and return it, or None if there is none.

    The mark is part of the transaction that lands the segment's events. The row stays: `remove_replayed` deletes it.
    Segments that another transaction or this job has claimed already, and those that were set aside, are skipped.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT segment, source, file, events, oldest_at FROM shed_segment WHERE pipeline = %s AND fields = %s "
            "AND damage IS NULL AND NOT replayed_by <=> %s ORDER BY oldest_at LIMIT 1 FOR UPDATE SKIP LOCKED",
            (pipeline, fields_number(schema), job),
        )
        found = cursor.fetchall()
        if not found:
            return None
        segment = Segment(*found[0])
        cursor.execute("UPDATE shed_segment SET replayed_by = %s WHERE segment = %s", (job, segment.number))
    return segment


def set_aside(connection: Connection, pipeline: str, segment: Segment, problem: Exception) -> str:
    """Undo `claim` and set aside, for an operator, a segment that cannot be read; return the log line about it."""
    connection.rollback()
    why = str(problem).rstrip(".")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE shed_segment SET damage = LEFT(%s, 500) WHERE segment = %s", (why, segment.number))
    connection.commit()
    return (
        f"shed file {segment.file} cannot be read: {why}. It is set aside as segment {segment.number}; those of its "
        f"{segment.events} events that have not landed stay in {pipeline}_shed. Restore the file, or let the "
        "application read the topic again: docs/operating.md says how."
    )


def remove_replayed(connection: Connection, root: Path, segments: Sequence[int]) -> None:
    """Remove segments whose events have landed and whose messages are sent: first the rows, then the files."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT file FROM shed_segment WHERE segment IN %s", (segments,))
        files = [root / file for (file,) in cursor.fetchall()]
        cursor.execute("DELETE FROM shed_segment WHERE segment IN %s", (segments,))
    connection.commit()
    for file in files:
        file.unlink(missing_ok=True)  # `sweep` at a start can have removed it already
        with suppress(OSError):  # it still has files
            file.parent.rmdir()


def sweep(connection: Connection, root: Path, pipeline: str) -> None:
    """Remove the files that have no row, except those of tasks that still run."""
    for folder in root.iterdir() if root.is_dir() else ():
        with suppress(BlockingIOError), _locked(folder):
            with connection.cursor() as cursor:
                cursor.execute("SELECT file FROM shed_segment WHERE pipeline = %s", (pipeline,))
                known = {root / file for (file,) in cursor.fetchall()}
            connection.commit()
            for file in set(folder.iterdir()) - known:
                file.unlink()
            with suppress(OSError):  # it still has files
                folder.rmdir()


def waiting(connection: Connection, pipeline: str, schema: pa.Schema) -> Waiting:
    """Return what waits. A segment whose job failed after landing still counts as a segment, its events do not."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT COALESCE(SUM(damage IS NULL), 0), COALESCE(SUM(IF(replayed_by IS NULL, events, 0)), 0), "
            "COALESCE(SUM(IF(replayed_by IS NULL AND damage IS NOT NULL, events, 0)), 0), "
            "MIN(IF(replayed_by IS NULL, oldest_at, NULL)) FROM shed_segment WHERE pipeline = %s AND fields = %s",
            (pipeline, fields_number(schema)),
        )
        ((segments, events, damaged, oldest_at),) = cursor.fetchall()
    return Waiting(int(segments), int(events), int(damaged), oldest_at)


def fields_number(schema: pa.Schema) -> int:
    """Return a checksum of the columns: a file that has other columns than the pipeline cannot be read."""
    return zlib.crc32(schema.to_string(show_field_metadata=False).encode())
