"""Publish the next ranked copy: swap it in, and write the snapshot that the stream reads."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import compute
from semistream import PageFile, write_page_file
from semistream.durability import fsync_directory

from foundation.connections import connect
from foundation.errors import SnapshotError
from spark_apps.master.changes import prune_changes
from spark_apps.master.ranking import PATIENCE, Patience, find_copy, one_at_a_time, swap_in
from spark_apps.master.snapshots import Snapshot, current, published
from spark_apps.master.tables import RANK, Names, ranked_columns
from spark_apps.warehouse.result_rows import read_rows
from spark_apps.warehouse.statements import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from foundation.connections import Login
    from spark_apps.master.ranking import Ranking
    from spark_apps.pipeline.definition import Master
    from spark_apps.pipeline.join_plan import JoinPlan

# Reading a page costs the join a fixed time, and the end of each task reads nearly all pages, so they should be few.
# But a page must be a small part of a worker's memory.
PAGE_BYTES, LEAST_PAGE_ROWS = 1280 * 1024, 8_000
KEPT = 2  # versions: the newest ones, held or not


def publish(  # noqa: PLR0913  # operators keep the defaults of two
    owner: Login,
    master: Master,
    ranking: Ranking,
    folder: Path,
    page_rows: int | None = None,
    *,
    plan: Callable[[PageFile], JoinPlan] | None = None,
    patience: Patience = PATIENCE,
) -> Snapshot:
    """Write the pages of the next version, plan the join, swap the ranked copy in, and then announce the version.

    A publish that was killed can be repeated, even if the copy was swapped in or the version announced.

    Memory is bounded: a buffer of rows, a page, and one of the 64 parts of the index.
    """
    with one_at_a_time(owner, master, patience):
        snapshot = write_pages(owner, master, ranking, folder, page_rows)
        if plan is not None:
            snapshot = replace(snapshot, plan=plan(PageFile(snapshot.path)))
        if find_copy(owner, master, ranking) == Names(master.table).next_by_rank:
            swap_in(owner, master, patience)
        announce(snapshot)
        remove_old(folder)
        with connect(owner) as connection:
            prune_changes(connection, master, oldest_position(folder.parent, master))
    return snapshot


def write_pages(owner: Login, master: Master, ranking: Ranking, folder: Path, page_rows: int | None = None) -> Snapshot:
    """Write the page file of the next version; readers do not see it before it is announced.

    Args:
        owner: login of the owner's account.
        master: the master table.
        ranking: the copy to write.
        folder: the folder of the pipeline's snapshots.
        page_rows: rows in a page; by default as many as fit into PAGE_BYTES.

    Raises:
        SnapshotError: the copy is gone, or its number of rows is not the ranking's, or a key is there twice.
    """
    table = find_copy(owner, master, ranking)
    folder.mkdir(parents=True, exist_ok=True)
    newest = current(folder)
    version = newest.version + 1 if newest else 1
    path = folder / f"v{version:06d}.pages"
    columns = list(dict.fromkeys([*master.key, *master.columns]))
    changed_until = None

    def without_changed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        nonlocal changed_until
        for batch in batches:
            newest_change = compute.max(batch[master.changed]).as_py()
            changed_until = max(filter(None, (newest_change, changed_until)), default=None)
            yield batch.select(columns)

    with connect(owner) as connection:
        schema, batches = read_rows(
            connection, f"SELECT {listed(ranked_columns(master))} FROM `{table}` ORDER BY {RANK}"
        )
        kept = pa.schema([schema.field(name) for name in columns])
        sample = next(batches, pa.RecordBatch.from_pylist([], schema))
        rows = page_rows or fitting_rows(sample.select(columns))
        write_page_file(path, kept, without_changed(chain([sample], batches)), master.key, rows)
    written = PageFile(path)
    if not (ranking.least <= written.row_count <= ranking.most and written.unique):
        raise SnapshotError(
            f"{path.name} must have {ranking.least} to {ranking.most} rows with unique keys, got {written.row_count} "
            f"with {'unique' if written.unique else 'repeated'} keys: it is not published",
            "Run the pipeline's Dag refresh again.",
        )
    now = datetime.now(UTC).isoformat(timespec="seconds")
    until = changed_until and str(changed_until)
    return Snapshot(version, path, written.row_count, ranking.position, until, now, master.table)


def fitting_rows(sample: pa.RecordBatch) -> int:
    """Return how many rows fit into PAGE_BYTES if all are as wide as the sample's, at least LEAST_PAGE_ROWS."""
    fit: int = PAGE_BYTES * sample.num_rows // max(sample.nbytes, 1)
    return max(fit, LEAST_PAGE_ROWS)


def announce(snapshot: Snapshot) -> None:
    """Write a version's manifest, atomically: from then on readers use the version."""
    half = snapshot.path.with_suffix(".half")
    with half.open("w") as file:
        json.dump(asdict(snapshot) | {"path": snapshot.path.name}, file)
        file.flush()
        os.fsync(file.fileno())
    half.replace(snapshot.manifest)
    fsync_directory(snapshot.path.parent)


def remove_old(folder: Path) -> None:
    """Remove old versions that nobody holds, and files that a killed publisher left."""
    versions = sorted(published(folder), key=lambda snapshot: snapshot.version)
    for snapshot in versions[:-KEPT]:
        with snapshot.manifest.open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            snapshot.manifest.unlink()
            snapshot.path.unlink()
    known = {file for snapshot in published(folder) for file in (snapshot.path, snapshot.manifest)}
    for file in folder.iterdir():
        if file not in known and file.is_file():
            file.unlink()


def oldest_position(pipelines: Path, master: Master) -> int:
    """Return the lowest change-log position of the master table's snapshots, in the folders of all pipelines."""
    versions = (version for folder in pipelines.iterdir() for version in published(folder))
    return min(version.position for version in versions if version.table in {master.table, None})
