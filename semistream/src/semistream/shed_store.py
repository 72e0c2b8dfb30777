"""Shed stream tuples in a directory on disk, safe from a crash between any two system calls.

A file holds a portion of shed tuples and their schema. Its name has a sequence number, the number of its tuples, and a
random part, so that stores that share a directory never write the same file. The store writes a file under a temporary
name, syncs and renames it, and syncs the directory; only then are its tuples stored. The caller removes a file when the
output of its tuples is safe.
"""

import fcntl
import os
import uuid
import zlib
from pathlib import Path

import pyarrow as pa
from semistream.durability import fsync_directory

__all__ = ["ShedStore", "rows_in"]

_HEADER = 16  # checksum and length, eight bytes each
_SUFFIX = ".shed"


class ShedStore:
    """Batches of stream tuples, first in, first out.

    Args:
        directory: where the files are. The store includes existing files. If several stores share a directory, only
            one of them should replay tuples.
        schema: the stream's columns.
    """

    def __init__(self, directory: Path, schema: pa.Schema) -> None:
        self._directory = directory
        self.schema = schema
        _make_directory(directory)
        for unfinished in directory.glob("*.tmp"):
            _remove_abandoned(unfinished)
        self._names = sorted(path.name for path in directory.glob(f"*{_SUFFIX}"))
        self._next = int(self._names[-1].split("-")[0]) + 1 if self._names else 0

    def __len__(self) -> int:
        return sum(rows_in(name) for name in self._names)

    @property
    def names(self) -> list[str]:
        """List the files, the oldest first."""
        return list(self._names)

    def add(self, tuples: pa.RecordBatch) -> None:
        """Store tuples. When this returns, they are on the disk."""
        name = f"{self._next:016d}-{tuples.num_rows}-{uuid.uuid4().hex}{_SUFFIX}"
        content = _to_buffer(tuples)
        header = zlib.crc32(content).to_bytes(8, "little") + content.size.to_bytes(8, "little")
        unfinished = self._directory / f"{name}.tmp"
        descriptor = _create(unfinished)
        try:
            _write_all(descriptor, header)
            _write_all(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(unfinished, self._directory / name)  # noqa: PTH105 - one system call, as the others here
        fsync_directory(self._directory)
        self._next += 1
        self._names.append(name)

    def read(self, name: str) -> pa.RecordBatch:
        """Read the tuples of a file."""
        path = self._directory / name
        content = pa.py_buffer(path.read_bytes())  # not mapped: a failed read raises OSError, not SIGBUS
        checksum = int.from_bytes(content[:8].to_pybytes(), "little")
        length = int.from_bytes(content[8:_HEADER].to_pybytes(), "little")
        body = content[_HEADER:]
        if body.size != length or zlib.crc32(body) != checksum:
            raise ValueError(f"{path} must match its checksum, it is damaged: restore the file, or move it away")
        reader = pa.ipc.open_stream(body)
        if not reader.schema.equals(self.schema):
            raise ValueError(
                f"{path} must have the stream's columns {_named(self.schema)}, it has "
                f"{_named(reader.schema)}: open it with the schema that it has, or move it away"
            )
        return reader.read_next_batch()

    def remove(self, name: str) -> None:
        """Delete a file; the caller has made the output of its tuples safe."""
        os.unlink(self._directory / name)  # noqa: PTH108 - one system call, as the others here
        fsync_directory(self._directory)
        self._names.remove(name)


def rows_in(name: str) -> int:
    """Return how many tuples a file has, from its name."""
    return int(name.removesuffix(_SUFFIX).split("-")[1])


def _to_buffer(tuples: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, tuples.schema) as writer:
        writer.write_batch(tuples)
    return sink.getvalue()


def _named(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}{'' if field.nullable else ' not null'}" for field in schema)


def _make_directory(directory: Path) -> None:
    """Create a directory and its parents, and sync the parent of each."""
    fresh = [directory, *(parent for parent in directory.parents if not parent.exists())]
    directory.mkdir(parents=True, exist_ok=True)
    for made in fresh:
        fsync_directory(made.parent)


def _create(path: Path) -> int:
    """Create a file and lock it while it is open, so that no other store removes it as abandoned."""
    while True:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)  # another store removed it before it was locked


def _remove_abandoned(path: Path) -> None:
    """Remove an unfinished file, unless a process still writes it."""
    try:
        descriptor = os.open(path, os.O_WRONLY)
    except FileNotFoundError:  # finished, or removed by another store
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except BlockingIOError:
        pass
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, content: bytes | pa.Buffer) -> None:
    """Write all bytes, in as many calls as it takes."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
