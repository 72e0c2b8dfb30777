"""A worker's join: built over a snapshot of the master data once, used task after task.

Between two tasks nothing waits in it. What it remembers, the cache of hot rows and their frequencies, may be lost at
any moment without harm.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

from semistream.relation.page_file import PageFile

from foundation.errors import SnapshotError
from semistream import joins
from spark_apps.enriching.task_join import joined_part
from spark_apps.events.reader import EventReader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa
    from semistream.joins.semi_stream_join import SemiStreamJoin

    from spark_apps.pipeline.definition import JoinName, Pipeline

# Every join of the library but the one whose condition is no equality: a pipeline's file names a key.
JOINS: dict[JoinName, type[SemiStreamJoin]] = {
    "chybridjoin": joins.TimedCHybridJoin,
    "hybridjoin": joins.HybridJoin,
    "x_hybridjoin": joins.XHybridJoin,
    "optimised_x_hybridjoin": joins.OptimisedXHybridJoin,
    "cmeshjoin": joins.CMeshJoin,
    "meshjoin": joins.MeshJoin,
    "r_meshjoin": joins.RMeshJoin,
    "ordered_meshjoin": joins.OrderedMeshJoin,
    "cinlj": joins.CachedIndexNestedLoopJoin,
    "inlj": joins.IndexNestedLoopJoin,
}
_MEGABYTE = 1024 * 1024
_idle: dict[tuple[str, Path], SemiStreamJoin] = {}


@contextmanager
def borrowed_join(pipeline: Pipeline, events: pa.Schema, snapshot: Path) -> Iterator[SemiStreamJoin]:
    """Give this worker's join for a snapshot, made anew when there is none.

    A join that fails in the middle of a task still holds that task's events: it is not used again.
    """
    key = (pipeline.name, snapshot)
    known = _idle.pop(key, None)
    if known is None:
        gc.unfreeze()
        _idle.clear()
    join = known or _construct(pipeline, events, snapshot)
    yield join
    _idle.clear()  # an older snapshot's join goes before there are two in memory at the next task
    _idle[key] = join
    if known is None:
        # Spark's worker collects garbage after each task: what stays, the kernels that this one has loaded with the
        # join, need not be looked through each time.
        gc.collect()
        gc.freeze()


def check_join(pipeline: Pipeline, snapshot: Path) -> None:
    """Read every page of a snapshot and make the pipeline's join with it, or raise SnapshotError."""
    events = EventReader(pipeline.source.fields, pipeline.master.key).schema
    try:
        PageFile(snapshot).verify()
        _construct(pipeline, events, snapshot)
    except (ValueError, OSError) as error:
        raise SnapshotError(
            f"pipeline {pipeline.name!r} cannot be joined with its snapshot: {error}",
            "The Dag refresh_master_order publishes another snapshot.",
        ) from error


def _construct(pipeline: Pipeline, events: pa.Schema, snapshot: Path) -> SemiStreamJoin:
    return JOINS[pipeline.join](
        PageFile(snapshot),
        joined_part(events, pipeline.master.key),
        on=pipeline.master.key,
        memory=pipeline.memory_mb * _MEGABYTE,
        how="left",
        columns=pipeline.master.columns,
    )
