"""Sinks on this machine: a file, standard output, or none; kafka_sink.py has the Kafka sink."""

import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from generator.events import SCHEMA, Events
from generator.sinks import SinkError
from generator.tally import Tally

_ROW_GROUP = 65_536


class NullSink:
    """Counts and drops events, to measure how fast the generator makes them."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def write(self, events: Events) -> None:
        """Count the events."""
        self._tally.sent += len(events)
        self._tally.acknowledged += len(events)

    def settle(self) -> None:
        """Do nothing: every event is already acknowledged."""

    def close(self) -> None:
        """Do nothing: every event is already acknowledged."""


class JsonSink:
    """Newline-delimited JSON to a file or standard output; acknowledged when the operating system has the bytes."""

    def __init__(self, file: BinaryIO, tally: Tally) -> None:
        self._file = file
        self._tally = tally

    def write(self, events: Events) -> None:
        """Write one line for each event."""
        text, _ = events.json_lines()
        self._tally.sent += len(events)
        try:
            self._file.write(text)
            self._file.flush()
        except OSError as error:
            raise _not_writable(self._file.name, error) from error
        self._tally.acknowledged += len(events)

    def settle(self) -> None:
        """Do nothing: every event is already acknowledged."""

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class ParquetSink:
    """A Parquet file with the schema of events.py; acknowledged when its footer is written."""

    def __init__(self, path: str | os.PathLike[str], tally: Tally) -> None:
        self._path = path
        try:
            self._writer = pq.ParquetWriter(path, SCHEMA, compression="zstd")
        except OSError as error:
            raise _not_writable(path, error) from error
        self._tally = tally
        self._waiting: list[pa.RecordBatch] = []

    def write(self, events: Events) -> None:
        """Collect events; write a row group when it is large enough."""
        self._waiting.append(events.arrow())
        self._tally.sent += len(events)
        if sum(batch.num_rows for batch in self._waiting) >= _ROW_GROUP:
            self._write_group()

    def _write_group(self) -> None:
        group, self._waiting = pa.Table.from_batches(self._waiting, SCHEMA), []
        try:
            self._writer.write_table(group)
        except OSError as error:
            with suppress(OSError):  # the file is lost; the first error has the cause
                self._writer.close()
            raise _not_writable(self._path, error) from error

    def settle(self) -> None:
        """Do nothing: no event is acknowledged before `close` writes the footer."""

    def close(self) -> None:
        """Write the rest and the footer; after a failed write nothing is acknowledged."""
        if not self._writer.is_open:
            return
        if self._waiting:
            self._write_group()
        try:
            self._writer.close()
        except OSError as error:
            raise _not_writable(self._path, error) from error
        self._tally.acknowledged = self._tally.sent


def create(path: Path) -> BinaryIO:
    """Create a file for a sink."""
    try:
        return path.open("wb")
    except OSError as error:
        raise _not_writable(path, error) from error


def _not_writable(path: str | os.PathLike[str], error: OSError) -> SinkError:
    return SinkError(f"path: {path} cannot be written ({error}); free some space, or choose another path")
