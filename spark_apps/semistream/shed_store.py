"""Shed stream tuples in a directory on disk, safe across a crash between any two system calls.

A file holds the tuples of one shedding, and its name its number and how many they are. It is written under a temporary
name, synced, renamed, and the directory is synced; only then do its tuples count as stored. It is removed when the
caller says that what became of its tuples is safe.
"""

import os
import zlib
from pathlib import Path

import pyarrow as pa

_HEADER = 16  # checksum and length, eight bytes each
_SUFFIX = ".shed"


class ShedStore:
    """Batches of stream tuples, first in, first out.

    Args:
        directory: where the files are; files that an earlier process left there are in the store.
        schema: the stream's columns.
    """

    def __init__(self, directory: Path, schema: pa.Schema) -> None:
        self._directory = directory
        self._schema = schema
        directory.mkdir(parents=True, exist_ok=True)
        for unfinished in directory.glob("*.tmp"):
            unfinished.unlink()
        self._names = sorted(path.name for path in directory.glob(f"*{_SUFFIX}"))
        self._next = int(self._names[-1].split("-")[0]) + 1 if self._names else 0

    def __len__(self) -> int:
        return sum(rows_in(name) for name in self._names)

    @property
    def names(self) -> list[str]:
        """List the files, the oldest first."""
        return list(self._names)

    def add(self, tuples: pa.RecordBatch) -> None:
        """Store tuples; when this returns they are on the disk."""
        name = f"{self._next:016d}-{tuples.num_rows}{_SUFFIX}"
        content = tuples.serialize().to_pybytes()
        header = zlib.crc32(content).to_bytes(8, "little") + len(content).to_bytes(8, "little")
        unfinished = self._directory / f"{name}.tmp"
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            _write_all(descriptor, header + content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(unfinished, self._directory / name)  # noqa: PTH105 - as bare a system call as the others here
        self._sync_directory()
        self._next += 1
        self._names.append(name)

    def read(self, name: str) -> pa.RecordBatch:
        """Read the tuples of a file."""
        path = self._directory / name
        content = pa.memory_map(str(path)).read_buffer()
        checksum = int.from_bytes(content[:8].to_pybytes(), "little")
        length = int.from_bytes(content[8:_HEADER].to_pybytes(), "little")
        body = content[_HEADER:]
        if body.size != length or zlib.crc32(body) != checksum:
            raise ValueError(
                f"{path} must match its checksum: the disk has damaged it, restore the file or set it aside"
            )
        return pa.ipc.read_record_batch(body, self._schema)

    def remove(self, name: str) -> None:
        """Forget a file whose tuples have been taken care of."""
        os.unlink(self._directory / name)  # noqa: PTH108 - as bare a system call as the others here
        self._sync_directory()
        self._names.remove(name)

    def _sync_directory(self) -> None:
        descriptor = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def rows_in(name: str) -> int:
    """Read from its name how many tuples a file has."""
    return int(name.removesuffix(_SUFFIX).split("-")[1])


def _write_all(descriptor: int, content: bytes) -> None:
    """Write all bytes, in as many calls as it takes."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
