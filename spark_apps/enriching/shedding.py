"""Events whose batch has no time for them: on disk in the shed store, known to the warehouse, replayed later.

    shed/<pipeline>/<one task's folder>/<number>-<events>.shed    a segment: a file of the library's shed store
    shed_segment                                                  its row in the warehouse, while it is needed
    <pipeline>_shed                                               the positions of the events that wait

A file is complete and synced before its row is written, in the transaction that says that its events were read. The
transaction that replays a segment marks its row. Row and file go when that task's job is done, because only then its
messages are in the enriched topic. So after a crash every row has its file, and an event that is replayed twice lands
twice on the same position. The next start removes files without a row. A file that is missing or damaged is set aside:
its row says why, and its events keep waiting.
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

from semistream.durability import fsync_directory

from semistream import LoadShedder, ShedStore

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
        """Read the events."""
        folder, _, name = self.file.partition("/")
        return ShedStore(root / folder, schema).read(name)


@dataclass(frozen=True)
class Waiting:
    """What waits in a pipeline's shed store.

    Attributes:
        segments: how many can be replayed.
        events: how many wait.
        damaged: how many of those are in segments that were set aside.
        oldest_at: when the oldest of them came.
    """

    segments: int = 0
    events: int = 0
    damaged: int = 0
    oldest_at: datetime | None = None

    @property
    def oldest_seconds(self) -> float:
        """The age of the oldest event that waits, 0 when none does."""
        if self.oldest_at is None:
            return 0.0
        return (datetime.now(UTC) - self.oldest_at.replace(tzinfo=UTC)).total_seconds()


class TaskShedder:
    """Sheds for one attempt of a task, into a folder of its own, which is made when there is something to shed.

    Args:
        root: the pipeline's folder.
        store: makes the store in the task's folder.
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
    """A shed store that keeps the whole events behind a join's tuples, and reports each file that it has written.

    Args:
        folder: the task's.
        schema: the columns of the events.
        events_of: returns the whole events that tuples of the join stand for.
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
    """Make a folder and lock it, so that `sweep` leaves it alone as long as this process needs it."""
    root.mkdir(parents=True, exist_ok=True)
    folder = root / uuid.uuid4().hex
    folder.mkdir()
    for changed in (root, root.parent, root.parent.parent):  # any of them may be new
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
    """Mark the segment that has waited longest, in the transaction that lands its events; None if there is none.

    Its row stays. A segment that another transaction has claimed is passed over. So is one that this job has claimed
    already, and one that was set aside.
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
    """Undo `claim` and leave a segment that cannot be read to an operator; return the line that says so."""
    connection.rollback()
    why = str(problem).rstrip(".")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE shed_segment SET damage = LEFT(%s, 500) WHERE segment = %s", (why, segment.number))
    connection.commit()
    return (
        f"shed file {segment.file} cannot be read: {why}. It is set aside as segment {segment.number}; those of its "
        f"{segment.events} events that have not landed stay in {pipeline}_shed. Restore it, or have them read again "
        "from the topic: docs/operating.md says how."
    )


def remove_replayed(connection: Connection, root: Path, segments: Sequence[int]) -> None:
    """Remove segments whose events have landed and whose messages are sent: first the rows, then the files."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT file FROM shed_segment WHERE segment IN %s", (segments,))
        files = [root / file for (file,) in cursor.fetchall()]
        cursor.execute("DELETE FROM shed_segment WHERE segment IN %s", (segments,))
    connection.commit()
    for file in files:
        file.unlink(missing_ok=True)  # the sweep of a start may have been quicker
        with suppress(OSError):  # it has more files
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
            with suppress(OSError):  # it is not empty
                folder.rmdir()


def waiting(connection: Connection, pipeline: str, schema: pa.Schema) -> Waiting:
    """Return what waits. A segment whose job failed after landing is still listed; its events are not counted again."""
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
    """Return a number that differs between schemas: a file of other columns than the pipeline has cannot be read."""
    return zlib.crc32(schema.to_string(show_field_metadata=False).encode())
