"""The shed store loses nothing when the machine stops between any two system calls."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from semistream.shed_store import ShedStore

SCHEMA = pa.schema([pa.field("n", pa.int64()), pa.field("note", pa.string())])


class MachineStoppedError(BaseException):
    """The simulated machine has stopped; the code under test does not catch this error."""


class Machine:
    """Replace the system calls by those of a machine that stops before the call with number `stop_at`.

    It remembers what has been synced. `restart` leaves in the directory what a disk can keep: an unsynced file loses
    half of its bytes; renames and removals in an unsynced directory are undone, or kept.
    """

    CALLS = ("open", "write", "fsync", "close", "replace", "unlink")

    def __init__(self, directory: Path, stop_at: int, patch: pytest.MonkeyPatch) -> None:
        self.directory = directory
        self.stop_at = stop_at
        self.calls = 0
        self.unsynced: set[str] = set()
        self.undo: list[Callable[[], Any]] = []
        self.descriptors: set[int] = set()
        self.close = os.close
        for name in self.CALLS:
            patch.setattr(os, name, self._wrap(name, getattr(os, name)))

    def _wrap(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any system call
            if self.calls == self.stop_at:
                raise MachineStoppedError
            self.calls += 1
            self._note(name, args)
            result = real(*args, **kwargs)
            if name == "open":
                self.descriptors.add(result)
            return result

        return call

    def _note(self, name: str, args: tuple[Any, ...]) -> None:
        if name == "write":
            self.unsynced.add(str(Path(f"/proc/self/fd/{args[0]}").readlink()))
        elif name == "fsync":
            path = str(Path(f"/proc/self/fd/{args[0]}").readlink())
            if path == str(self.directory):
                self.undo.clear()
            self.unsynced.discard(path)
        elif name == "close":
            self.descriptors.discard(args[0])
        elif name == "replace":
            source, target = Path(args[0]), Path(args[1])
            assert str(source) not in self.unsynced, "a file must be synced before it is renamed"
            self.undo.append(lambda: target.rename(source) if target.exists() else None)
        elif name == "unlink":
            gone = Path(args[0])
            content = gone.read_bytes()
            self.undo.append(lambda: gone.write_bytes(content))

    def restart(self, *, directory_kept: bool) -> None:
        """Reduce the directory to what the disk can hold after the stop."""
        for descriptor in self.descriptors:
            self.close(descriptor)
        for path in map(Path, self.unsynced):
            if path.exists():
                path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        if not directory_kept:
            for undo in reversed(self.undo):
                undo()


def _batch(number: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"n": number * 10 + i, "note": "x" * i} for i in range(3)], schema=SCHEMA)


def _work(store: ShedStore, added: list[int], removing: list[int], removed: list[int]) -> None:
    """Add three batches and remove two; record which calls have begun and which have returned."""
    for number in range(2):
        store.add(_batch(number))
        added.append(number)
    removing.append(0)
    store.remove(store.names[0])
    removed.append(0)
    store.add(_batch(2))
    added.append(2)
    removing.append(1)
    store.remove(store.names[0])
    removed.append(1)


def _calls_of_all_work(directory: Path) -> int:
    with pytest.MonkeyPatch.context() as patch:
        machine = Machine(directory, -1, patch)
        _work(ShedStore(directory, SCHEMA), [], [], [])
    return machine.calls


def test_keeps_what_was_added_through_a_stop_between_any_two_calls(tmp_path: Path) -> None:
    """Whenever the machine stops, a batch whose `add` has returned is complete, unless its removal has begun."""
    calls = _calls_of_all_work(tmp_path / "count")
    assert calls > 30
    for stop_at in range(calls):
        for directory_kept in (True, False):
            directory = tmp_path / "store"
            shutil.rmtree(directory, ignore_errors=True)
            added: list[int] = []
            removing: list[int] = []
            removed: list[int] = []
            with pytest.MonkeyPatch.context() as patch:
                machine = Machine(directory, stop_at, patch)
                with pytest.raises(MachineStoppedError):
                    _work(ShedStore(directory, SCHEMA), added, removing, removed)
            machine.restart(directory_kept=directory_kept)
            store = ShedStore(directory, SCHEMA)
            kept = [store.read(name) for name in store.names]
            numbers = [batch.column("n")[0].as_py() // 10 for batch in kept]
            assert all(batch.equals(_batch(number)) for batch, number in zip(kept, numbers, strict=True))
            assert numbers == sorted(set(numbers)), "in order, none twice"
            assert set(added) - set(removing) <= set(numbers), f"lost at call {stop_at}"
            assert not set(removed) & set(numbers), f"came back after call {stop_at}"
            assert not list(directory.glob("*.tmp"))


def test_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    """Reading a file with a flipped bit is an error."""
    store = ShedStore(tmp_path, SCHEMA)
    store.add(_batch(1))
    path = tmp_path / store.names[0]
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="must match its checksum"):
        store.read(store.names[0])


def test_a_file_of_other_columns_is_an_error(tmp_path: Path) -> None:
    """A file written with other columns is an error: no column is read by position or as another type."""
    ShedStore(tmp_path, SCHEMA).add(_batch(1))
    retyped = pa.schema([pa.field("n", pa.float64()), SCHEMA.field("note")])
    swapped = pa.schema([SCHEMA.field("note"), SCHEMA.field("n")])
    for schema in (retyped, swapped):
        store = ShedStore(tmp_path, schema)
        with pytest.raises(
            ValueError, match=r"must have the stream's columns .*, it has n int64, note string: open it"
        ):
            store.read(store.names[0])


def test_stores_that_share_a_directory_keep_out_of_each_others_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two stores in one directory overwrite none of each other's files and remove none that is being written."""
    first, second = ShedStore(tmp_path, SCHEMA), ShedStore(tmp_path, SCHEMA)
    second.add(_batch(1))
    fsync = os.fsync

    def interrupted(descriptor: int) -> None:
        monkeypatch.setattr(os, "fsync", fsync)
        ShedStore(tmp_path, SCHEMA)  # before the first store's file is finished
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", interrupted)
    first.add(_batch(0))
    together = ShedStore(tmp_path, SCHEMA)
    assert sorted(together.read(name).column("n")[0].as_py() for name in together.names) == [0, 10]


def test_a_new_directory_lasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every new directory is synced into its parent, so it survives a power loss."""
    synced: list[str] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    ShedStore(tmp_path / "a" / "b", SCHEMA)
    assert set(synced) == {str(tmp_path), str(tmp_path / "a")}


def test_numbers_go_on_after_a_restart(tmp_path: Path) -> None:
    """Files that are added after a restart come after the older ones."""
    ShedStore(tmp_path, SCHEMA).add(_batch(0))
    store = ShedStore(tmp_path, SCHEMA)
    store.add(_batch(1))
    assert [store.read(name).column("n")[0].as_py() for name in store.names] == [0, 10]
    assert len(store) == 6
