"""Where events go: a file, standard output, nothing; kafka_sink.py has Kafka."""

import os
from collections.abc import Callable
from typing import BinaryIO, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from generator.events import SCHEMA, Events
from generator.tally import Tally


class SinkError(RuntimeError):
    """The sink cannot take events; the message says what to do."""


class Stop:
    """A request to end the stream early, as soon as what was sent is safe.

    A plain flag, set by a signal handler or another thread: waiting for an Event or holding a lock while a signal
    handler sets it could block for ever.
    """

    def __init__(self, also: Callable[[], bool] = lambda: False) -> None:
        self._flag = False
        self._also = also

    def request(self) -> None:
        """Ask for the end."""
        self._flag = True

    @property
    def requested(self) -> bool:
        """Whether the end was asked for."""
        return self._flag or self._also()


class Sink(Protocol):
    """What the run needs of a sink; every sink counts in the tally what it sent and what is acknowledged."""

    def write(self, events: Events) -> None:
        """Take a batch of one event or more."""

    def settle(self) -> None:
        """Use a free moment to look at acknowledgements."""

    def close(self) -> None:
        """Make everything written safe and count it."""


class NullSink:
    """Throws events away: what remains is the speed of making them."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def write(self, events: Events) -> None:
        """Count the events."""
        self._tally.sent += len(events)
        self._tally.acknowledged += len(events)

    def settle(self) -> None:
        """Nothing is ever open."""

    def close(self) -> None:
        """Nothing is ever open."""


class JsonSink:
    """Newline-delimited JSON to a file or standard output; acknowledged when the system has taken the bytes."""

    def __init__(self, file: BinaryIO, tally: Tally) -> None:
        self._file = file
        self._tally = tally

    def write(self, events: Events) -> None:
        """Write the events, one a line."""
        text, _ = events.json_lines()
        self._tally.sent += len(events)
        try:
            self._file.write(text)
            self._file.flush()
        except OSError as error:
            raise SinkError(f"path: {self._file.name} takes no more events ({error.strerror})") from error
        self._tally.acknowledged += len(events)

    def settle(self) -> None:
        """Every write is already acknowledged."""

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class ParquetSink:
    """A Parquet file with the schema of events.py; acknowledged when its footer is written."""

    def __init__(self, path: str | os.PathLike[str], tally: Tally) -> None:
        self._writer = pq.ParquetWriter(path, SCHEMA, compression="zstd")
        self._tally = tally

    def write(self, events: Events) -> None:
        """Write the events as a row group."""
        self._tally.sent += len(events)
        self._writer.write_table(pa.Table.from_batches([events.arrow()]))

    def settle(self) -> None:
        """Nothing is acknowledged before the footer."""

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()
        self._tally.acknowledged = self._tally.sent
