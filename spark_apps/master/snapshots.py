"""Find and hold snapshots of master data: versions of a page file in the order of estimated access frequency.

    v000007.pages   the rows with their index, each page with its checksum (semistream.relation.page_file_format)
    v000007.json    the manifest: written atomically when the pages are complete and checked

Readers use the newest version with a manifest. A reader holds its version by a shared lock (flock) of the manifest. The
operating system releases the lock when the reader ends, even by kill -9. Publishing removes old versions that nobody
holds (spark_apps/master/publish.py).
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from foundation.errors import SnapshotError
from spark_apps.pipeline.dags import dag_of
from spark_apps.pipeline.join_plan import JoinPlan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True)
class Snapshot:
    """One version of the master data.

    Attributes:
        version: 1, 2, 3, ...
        path: the page file.
        rows: how many rows it has.
        position: in the change log; the rows have all changes up to it (spark_apps/master/changes.py).
        changed_until: when the newest change of a row was made, by the column `master.changed`; for people to read.
        published_at: when it was published.
        table: the master table; None in manifests that were written before they had this field.
        plan: how to join with it.
    """

    version: int
    path: Path
    rows: int
    position: int
    changed_until: str | None
    published_at: str
    table: str | None = None
    plan: JoinPlan = field(default_factory=JoinPlan)

    @property
    def manifest(self) -> Path:
        """The JSON file with these attributes."""
        return self.path.with_suffix(".json")


def current(folder: Path) -> Snapshot | None:
    """Return the newest version, or None if nothing was published yet."""
    return max(published(folder), key=lambda snapshot: snapshot.version, default=None)


@contextmanager
def hold(folder: Path) -> Iterator[Snapshot]:
    """Hold the newest version: it is not removed before the end of the block, or of the process.

    Raises:
        SnapshotError: nothing was published yet.
    """
    while (snapshot := current(folder)) is not None:
        try:
            lock = snapshot.manifest.open()
        except FileNotFoundError:
            continue  # it was removed since it was listed: there is a newer one
        with lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            if os.fstat(lock.fileno()).st_nlink:  # 0: it was removed before it was locked
                yield snapshot
                return
    raise SnapshotError(
        f"no snapshot in {folder}", f"Run the Dag {dag_of('refresh', folder.name)}, which publishes one."
    )


def published(folder: Path) -> Iterator[Snapshot]:
    """List all versions that have a manifest."""
    for manifest in folder.glob("v*.json"):
        try:
            attributes = json.loads(manifest.read_text())
            plan = JoinPlan(**attributes.get("plan", {}))
            snapshot = Snapshot(**attributes | {"path": folder / attributes["path"], "plan": plan})
        except FileNotFoundError:
            continue  # it was removed since it was listed
        except (ValueError, TypeError, KeyError) as error:
            raise SnapshotError(
                f"{manifest} must be the JSON of a snapshot: {error}",
                f"Remove it, then run the Dag {dag_of('refresh', folder.name)}.",
            ) from error
        yield snapshot
