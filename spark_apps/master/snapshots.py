"""The master data as the stream reads it: versions of a page file in the order of estimated access frequency.

    v000007.pages   the rows with their index, each page with its checksum (semistream/relation/page_file_format.py)
    v000007.json    what this version is; it appears, whole, when the pages are complete and were checked

The newest version with a JSON file is the one to use. A reader holds its version by a shared lock of the JSON file
(flock), which the kernel lets go when the reader ends, however it ends. Publishing removes old versions that nobody
holds (spark_apps/master/publish.py).
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from foundation.errors import SnapshotError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True)
class Snapshot:
    """One version of the master data.

    Attributes:
        version: 1, 2, 3, ...
        path: the page file.
        rows: how many it has.
        position: of the change log; read changes behind it (spark_apps/master/changes.py).
        changed_until: the newest change of a row by the master table's own column, for people to look at.
        published_at: when it was published.
        table: the master table; versions that were published before it was told have none.
    """

    version: int
    path: Path
    rows: int
    position: int
    changed_until: str | None
    published_at: str
    table: str | None = None

    @property
    def manifest(self) -> Path:
        """The JSON file that says all this."""
        return self.path.with_suffix(".json")


def current(folder: Path) -> Snapshot | None:
    """Return the version that readers should use, None when nothing was published yet."""
    return max(published(folder), key=lambda snapshot: snapshot.version, default=None)


@contextmanager
def hold(folder: Path) -> Iterator[Snapshot]:
    """Give the version that readers should use; it is not removed before the end of the block, or of the process.

    Raises:
        SnapshotError: nothing was published yet.
    """
    while (snapshot := current(folder)) is not None:
        try:
            lock = snapshot.manifest.open()
        except FileNotFoundError:
            continue  # removed since it was listed: there is a newer one
        with lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            if os.fstat(lock.fileno()).st_nlink:  # else it was removed before the lock was there
                yield snapshot
                return
    raise SnapshotError(f"no snapshot in {folder}", "The Dag refresh_master_order publishes one.")


def published(folder: Path) -> Iterator[Snapshot]:
    """List the versions that are there."""
    for manifest in folder.glob("v*.json"):
        try:
            told = json.loads(manifest.read_text())
            snapshot = Snapshot(**told | {"path": folder / told["path"]})
        except FileNotFoundError:
            continue  # removed since it was listed
        except (ValueError, TypeError, KeyError) as error:
            raise SnapshotError(
                f"{manifest} must be the JSON of a snapshot ({error})",
                "Remove it, then run the Dag refresh_master_order.",
            ) from error
        yield snapshot
