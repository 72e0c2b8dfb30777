"""Load shedding (003 section 4): under high load, the tuples that are dearest to join go to disk for a while."""

from typing import NamedTuple

import pyarrow as pa

from semistream.shed_store import ShedStore, rows_in
from semistream.stream_buffer import StreamBuffer
from semistream.waiting_tuples import WaitingTuples

LOOKUP_POSITION = 0.15  # of the queue's length, away from the end where tuples are shed (003 section 5.3.1)


class _Loaded(NamedTuple):
    """A file of shed tuples that is back in the join."""

    name: str
    last: int  # number in the stream that its last tuple got


class LoadShedder:
    """Sheds after considering: from the end of the queue, tuples whose pages few others wait for.

    Sheds when more than `1/portion` of h_S is too much, since a file and its sync cost the same for one tuple as for
    many; a file has that many at most, since tuples are in memory once more while they are written.

    Attributes:
        store: where shed tuples are.
        shed: tuples shed so far.
    """

    def __init__(self, store: ShedStore, portion: int = 16) -> None:
        if portion < 1:
            raise ValueError(f"portion must be at least 1, got {portion}: 16 sheds a sixteenth of h_S at a time")
        self.store = store
        self.shed = 0
        self._portion = portion
        self._loading: str | None = None
        self._rest: pa.RecordBatch | None = None  # tuples of the file being loaded that are not in SB yet
        self._loaded: list[_Loaded] = []

    @property
    def to_load(self) -> int:
        """Count the shed tuples that have not been loaded back."""
        rest = 0 if self._rest is None else self._rest.num_rows
        return rest + sum(rows_in(name) for name in self._not_loaded())

    def balance(self, w: int, waiting: WaitingTuples, buffer: StreamBuffer) -> None:
        """Shed or load back, as algorithm 2 does.

        Args:
            w: stream tuples that an iteration is expected to read; a buffer that holds twice as many is filling up.
            waiting: H_S and Q.
            buffer: SB.
        """
        surplus = len(buffer) - 2 * w
        if surplus > waiting.slots // self._portion:
            self._shed(surplus, waiting, buffer)
        elif surplus < 0:
            self.load(-surplus, buffer)

    def load(self, count: int, buffer: StreamBuffer) -> None:
        """Load up to `count` shed tuples into SB, the oldest file first."""
        if self._rest is None:
            names = self._not_loaded()
            if not names:
                return
            self._rest = self.store.read(names[0])
            self._loading = names[0]
        for piece in buffer.pieces(self._rest.slice(0, count)):
            if not buffer.has_room(piece):
                return
            buffer.put(piece)
            self._rest = self._rest.slice(piece.num_rows)
        if not self._rest.num_rows:
            self._all_loaded(buffer)

    def shed_portion(self, waiting: WaitingTuples) -> None:
        """Shed the oldest waiting tuples, as many as make one file; memory for them is a portion of H_S, too."""
        self._shed_queue(max(waiting.slots // self._portion, 1), waiting)

    def shed_all(self, waiting: WaitingTuples, buffer: StreamBuffer) -> None:
        """Shed every tuple that waits or has not been read, as when a batch's time is over.

        A file that is loaded in part is stored anew without that part, whose tuples have left it for good.
        """
        if self._rest is not None:
            self.store.add(self._rest)
            self._all_loaded(buffer)
        self._shed_queue(len(waiting), waiting)
        self._shed_buffer(len(buffer), buffer)

    def commit(self, oldest: int) -> None:
        """Remove files all of whose tuples have left the join, their output being safe.

        Args:
            oldest: number of the oldest tuple that is still in the join.
        """
        for done in [file for file in self._loaded if file.last < oldest]:
            self.store.remove(done.name)
            self._loaded.remove(done)

    def _shed(self, count: int, waiting: WaitingTuples, buffer: StreamBuffer) -> None:  # noqa: ARG002 - see UpfrontShedder
        self._shed_queue(count, waiting)

    def _shed_queue(self, count: int, waiting: WaitingTuples) -> None:
        """Shed the oldest tuples of the queue along with those in H_S, once they are on the disk."""
        portion = max(waiting.slots // self._portion, 1)
        for start in range(0, min(count, len(waiting)), portion):
            slots = waiting.queue.oldest(min(portion, count - start))
            self._store(pa.RecordBatch.from_arrays(waiting.rows.take(slots), schema=waiting.rows.schema))
            waiting.delete(slots)

    def _shed_buffer(self, count: int, buffer: StreamBuffer) -> None:
        """Shed the newest tuples of the stream buffer."""
        for tuples in buffer.newest(count):
            self._store(tuples)
            buffer.drop_newest(tuples.num_rows)

    def _store(self, tuples: pa.RecordBatch) -> None:
        self.store.add(tuples)
        self.shed += tuples.num_rows

    def _all_loaded(self, buffer: StreamBuffer) -> None:
        """Note that the file being loaded has no more tuples to give."""
        if self._loading is not None:
            self._loaded.append(_Loaded(self._loading, buffer.arrived - 1))
        self._loading, self._rest = None, None

    def _not_loaded(self) -> list[str]:
        known = {self._loading, *(file.name for file in self._loaded)}
        return [name for name in self.store.names if name not in known]


class UpfrontShedder(LoadShedder):
    """Sheds before considering: the newest tuples of the stream buffer, the "keep" strategy of MESHJOIN.

    It is the baseline of 003 section 5.3.2.
    """

    def _shed(self, count: int, waiting: WaitingTuples, buffer: StreamBuffer) -> None:  # noqa: ARG002 - see LoadShedder
        self._shed_buffer(count, buffer)
