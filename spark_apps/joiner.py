"""A worker's join: built over a snapshot of the master data once, used task after task.

Between two tasks nothing waits in it. What it remembers, the cache of hot rows and their frequencies, may be lost at
any moment without harm.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

from spark_apps.semistream.joins import TimedCHybridJoin
from spark_apps.semistream.relation.page_file import PageFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa

    from spark_apps.pipeline import Pipeline
    from spark_apps.semistream.joins.semi_stream_join import SemiStreamJoin

_MEGABYTE = 1024 * 1024
_idle: dict[tuple[str, Path], SemiStreamJoin] = {}


@contextmanager
def borrowed_join(pipeline: Pipeline, events: pa.Schema, snapshot: Path) -> Iterator[SemiStreamJoin]:
    """Give this worker's join for a snapshot, made anew when there is none.

    A join that fails in the middle of a task still holds that task's events: it is not used again.
    """
    key = (pipeline.name, snapshot)
    join = _idle.pop(key, None) or _make(pipeline, events, snapshot)
    yield join
    _idle.clear()  # an older snapshot's join goes before there are two in memory at the next task
    _idle[key] = join


def _make(pipeline: Pipeline, events: pa.Schema, snapshot: Path) -> SemiStreamJoin:
    gc.unfreeze()
    _idle.clear()
    join = TimedCHybridJoin(
        PageFile(snapshot),
        events,
        on=pipeline.master.key,
        memory=pipeline.memory_mb * _MEGABYTE,
        how="left",
        columns=pipeline.master.columns,
    )
    gc.collect()
    gc.freeze()  # Spark's worker collects garbage after each task: what stays need not be looked through each time
    return join
