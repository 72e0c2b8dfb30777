"""Load shedding (CHYBRIDJOIN 2017, section 4).

Under high load the tuples that are most expensive to join are shed: they wait on disk. When the load is lower, they are
replayed: they go through the join again.
"""

import math
from typing import NamedTuple

import pyarrow as pa
from semistream.replay_pace import ReplayPace
from semistream.shed_store import ShedStore, rows_in
from semistream.stream_buffer import StreamBuffer
from semistream.waiting_tuples import WaitingTuples

__all__ = ["AFTER_SHED", "LoadShedder", "UpfrontShedder"]

AFTER_SHED = 64  # iterations after a shed in which the queue's oldest tuples count as being shed


class _Replayed(NamedTuple):
    """A file of shed tuples that are all back in the join."""

    name: str
    last: int  # the number in the stream that its last tuple got at its replay


class LoadShedder:
    """Sheds the oldest tuples of the queue: few others wait for their pages. The paper calls it "after considering".

    Tuples of the queue are shed in portions of `1/portion` of h_S, one file each. Less than a portion is not shed,
    since a file and its sync cost the same for one tuple as for many. A portion is limited, since its tuples are in
    memory twice while they are written.

    Attributes:
        store: the files of shed tuples.
        shed: tuples shed so far.
    """

    def __init__(self, store: ShedStore, portion: int = 16) -> None:
        if portion < 1:
            raise ValueError(f"portion must be at least 1, got {portion}: use 16 to shed a sixteenth of h_S at a time")
        self.store = store
        self.shed = 0
        self._portion = portion
        self._pace = ReplayPace()
        self._since_shed = AFTER_SHED
        self._replaying: str | None = None
        self._rest: pa.RecordBatch | None = None  # tuples of the file being replayed that are not in SB yet
        self._replayed: list[_Replayed] = []

    @property
    def to_replay(self) -> int:
        """Count the shed tuples that have not been replayed."""
        rest = 0 if self._rest is None else self._rest.num_rows
        return rest + sum(rows_in(name) for name in self._files_to_replay())

    @property
    def sheds_queue(self) -> bool:
        """Return whether tuples of the queue are being shed: the last were shed a few iterations ago."""
        return self._since_shed < AFTER_SHED

    def balance(self, w: int, misses: float, waiting: WaitingTuples, buffer: StreamBuffer) -> None:
        """Shed or replay (CHYBRIDJOIN 2017, algorithm 2).

        A surplus is shed once it needs the slots of a whole file, or fills half of the stream buffer.

        Args:
            w: stream tuples that an iteration can read; a buffer that holds more than 2w is filling up.
            misses: the share of stream tuples that have to wait.
            waiting: H_S and Q.
            buffer: SB, the stream buffer.
        """
        self._since_shed += 1
        surplus = len(buffer) - 2 * w
        if surplus * misses > self._file_rows(waiting) or surplus > buffer.chunk_rows // 2:
            self._shed(surplus, misses, waiting, buffer)
            self._pace.note_shed()
            return
        entering = math.ceil(len(buffer) * misses)
        count = self._pace.room(waiting.room, entering, idle=not len(waiting) and not len(buffer))
        if count and self.to_replay:
            self.replay(count, buffer)
            self._pace.note_replay()

    def replay(self, count: int, buffer: StreamBuffer) -> None:
        """Put up to `count` shed tuples back into SB, the oldest file first."""
        if self._rest is None:
            names = self._files_to_replay()
            if not names:
                return
            self._rest = self.store.read(names[0])
            self._replaying = names[0]
        for piece in buffer.pieces(self._rest.slice(0, count)):
            if not buffer.has_room(piece):
                return
            buffer.put(piece)
            self._rest = self._rest.slice(piece.num_rows)
        if not self._rest.num_rows:
            self._end_file(buffer)

    def shed_portion(self, waiting: WaitingTuples) -> None:
        """Shed one portion of waiting tuples, the oldest ones, into one file."""
        self._shed_queue(self._file_rows(waiting), waiting)

    def shed_all(self, waiting: WaitingTuples, buffer: StreamBuffer) -> None:
        """Shed every tuple that waits or has not been read, for example when a batch's time is over.

        The rest of a file that is replayed in part becomes a file of its own.
        """
        if self._rest is not None:
            self.store.add(self._rest)
            self._end_file(buffer)
        self._shed_queue(len(waiting), waiting)
        self._shed_buffer(len(buffer), buffer)

    def commit(self, oldest: int) -> None:
        """Remove the replayed files whose tuples have all left the join. The caller has made their output safe.

        Args:
            oldest: the number in the stream of the oldest tuple that is still in the join.
        """
        for done in [file for file in self._replayed if file.last < oldest]:
            self.store.remove(done.name)
            self._replayed.remove(done)

    def _shed(self, surplus: int, misses: float, waiting: WaitingTuples, buffer: StreamBuffer) -> None:  # noqa: ARG002 - see UpfrontShedder
        """Free the slots that a surplus of the stream buffer needs, at least those of one file."""
        self._shed_queue(max(math.ceil(surplus * misses), self._file_rows(waiting)), waiting)
        self._since_shed = 0

    def _shed_queue(self, count: int, waiting: WaitingTuples) -> None:
        """Write the oldest tuples of the queue to the disk, then remove them from H_S and Q."""
        portion = self._file_rows(waiting)
        for start in range(0, min(count, len(waiting)), portion):
            slots = waiting.queue.oldest(min(portion, count - start))
            self._store(pa.RecordBatch.from_arrays(waiting.rows.take(slots), schema=waiting.rows.schema))
            waiting.delete(slots)

    def _shed_buffer(self, count: int, buffer: StreamBuffer) -> None:
        """Write the newest tuples of the stream buffer to the disk, then remove them."""
        for tuples in buffer.newest(count):
            self._store(tuples)
            buffer.drop_newest(tuples.num_rows)

    def _store(self, tuples: pa.RecordBatch) -> None:
        self.store.add(tuples)
        self.shed += tuples.num_rows

    def _file_rows(self, waiting: WaitingTuples) -> int:
        """Return the largest number of tuples in a file from the queue."""
        return max(waiting.slots // self._portion, 1)

    def _end_file(self, buffer: StreamBuffer) -> None:
        """Note that the file being replayed has no more tuples."""
        if self._replaying is not None:
            self._replayed.append(_Replayed(self._replaying, buffer.arrived - 1))
        self._replaying, self._rest = None, None

    def _files_to_replay(self) -> list[str]:
        known = {self._replaying, *(file.name for file in self._replayed)}
        return [name for name in self.store.names if name not in known]


class UpfrontShedder(LoadShedder):
    """Sheds the newest tuples of the stream buffer before the join has considered them: MESHJOIN's "keep" strategy.

    It is the baseline of CHYBRIDJOIN 2017, section 5.3.2.
    """

    def _shed(self, surplus: int, misses: float, waiting: WaitingTuples, buffer: StreamBuffer) -> None:  # noqa: ARG002 - see LoadShedder
        self._shed_buffer(surplus, buffer)
