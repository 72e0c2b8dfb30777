"""A worker's join: built once for a snapshot of the master data, and used task after task.

Between two tasks no event waits in it. What it keeps, the cached rows and their frequencies, can be lost at any moment
without harm.
"""

from __future__ import annotations

import gc
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

import semistream
from semistream import PageFile, joins
from semistream.planning import Plan
from semistream.planning.adapt import Adaptation
from semistream.planning.machine import on_this_processor

from foundation.errors import SnapshotError
from spark_apps.enriching.task_join import joined_part
from spark_apps.enriching.workload import workload_of
from spark_apps.events.reader import EventReader
from spark_apps.pipeline.dags import dag_of
from spark_apps.pipeline.join_plan import JoinPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pyarrow as pa
    from semistream import Relation, SemiStreamJoin

    from spark_apps.pipeline.definition import Pipeline

# Each join under its name in a pipeline's file. CHYBRIDJOIN is the one that can shed when a batch's time is over.
JOINS: dict[str, type[SemiStreamJoin]] = {**joins.BY_NAME, "chybridjoin": semistream.TimedCHybridJoin}
_MEGABYTE = 1024 * 1024
AUTO, SHEDS = "auto", "chybridjoin"


class BorrowJoin(Protocol):
    """Lends a worker's join for the time of a task."""

    def __call__(
        self, pipeline: Pipeline, events: pa.Schema, snapshot: Path, plan: JoinPlan
    ) -> AbstractContextManager[SemiStreamJoin]:
        """Lend the join; no event waits in it before and after the block."""


class Joins:
    """The joins of one worker: one at a time, for one pipeline and one snapshot.

    Args:
        construct: makes a join.
        open_relation: opens a snapshot.
    """

    def __init__(self, construct: ConstructJoin, open_relation: Callable[[Path], Relation] = PageFile) -> None:
        self._construct = construct
        self._open_relation = open_relation
        self._idle: dict[tuple[str, Path], _Lent] = {}

    @contextmanager
    def __call__(
        self, pipeline: Pipeline, events: pa.Schema, snapshot: Path, plan: JoinPlan
    ) -> Iterator[SemiStreamJoin]:
        """Lend the worker's join for a snapshot; construct it when there is none.

        A join that fails in the middle of a task still holds that task's events: it is not used again.
        """
        key = (pipeline.name, snapshot)
        known = self._idle.pop(key, None)
        if known is None:
            gc.unfreeze()
            self.drop()
        lent = known or self._make(pipeline, events, snapshot, plan)
        yield lent.join
        lent.follow_the_stream()
        self.drop()  # so that the next task does not have two joins in memory
        self._idle[key] = lent
        if known is None:
            # Spark's worker runs the garbage collector after each task. The kernels that were loaded with the join stay
            # for good. Frozen, they are not searched each time.
            gc.collect()
            gc.freeze()

    def drop(self) -> None:
        """Drop the join; the next task constructs one."""
        self._idle.clear()

    @property
    def idle(self) -> SemiStreamJoin | None:
        """The join that no task uses now, None if there is none."""
        return next((lent.join for lent in self._idle.values()), None)

    def _make(self, pipeline: Pipeline, events: pa.Schema, snapshot: Path, plan: JoinPlan) -> _Lent:
        relation = self._open_relation(snapshot)
        join = self._construct(pipeline, events, relation, plan)
        if pipeline.join != AUTO or not isinstance(join, Adaptation.FOLLOWS) or not relation.row_count:
            return _Lent(join, None)
        workload = workload_of(pipeline, relation, plan.exponent)
        return _Lent(join, Adaptation(join, workload, on_this_processor(plan.device)))


class _Lent(NamedTuple):
    """A join, and what lets it follow its stream if nobody has named it in the pipeline's file."""

    join: SemiStreamJoin
    adaptation: Adaptation | None

    def follow_the_stream(self) -> None:
        """Divide the join's memory anew if the skew or the device has changed; no event waits now."""
        if self.adaptation is not None:
            self.adaptation.look()


class ConstructJoin(Protocol):
    """Makes a pipeline's join over a relation."""

    def __call__(self, pipeline: Pipeline, events: pa.Schema, relation: Relation, plan: JoinPlan) -> SemiStreamJoin:
        """Make the join."""


def parameters(pipeline: Pipeline, plan: JoinPlan) -> JoinPlan:
    """Return the plan, or the defaults for the join that the pipeline's file names if the plan is for another one.

    That happens when the file was changed after the snapshot was published.
    """
    if pipeline.batch_seconds is not None and plan.join != SHEDS:
        return JoinPlan(SHEDS)
    return plan if pipeline.join in {AUTO, plan.join} else JoinPlan(pipeline.join)


def construct_join(pipeline: Pipeline, events: pa.Schema, relation: Relation, plan: JoinPlan) -> SemiStreamJoin:
    """Make the pipeline's join with the plan's parameters."""
    used = parameters(pipeline, plan)
    planned = Plan(
        used.join,
        pipeline.memory_mb * _MEGABYTE,
        relation.page_rows,
        semistream.Shares(front_stage=used.front_stage),
        used.partition_pages,
        single_rows_below=used.single_rows_below,
    )
    return JOINS[used.join](
        relation,
        joined_part(events, pipeline.master.key),
        on=pipeline.master.key,
        how="left",
        columns=pipeline.master.columns,
        **planned.options(),
    )


_of_this_worker = Joins(construct_join)


def borrowed_join(
    pipeline: Pipeline, events: pa.Schema, snapshot: Path, plan: JoinPlan
) -> AbstractContextManager[SemiStreamJoin]:
    """Lend the join of the worker that this runs in."""
    return _of_this_worker(pipeline, events, snapshot, plan)


def check_join(pipeline: Pipeline, snapshot: Path, plan: JoinPlan) -> None:
    """Read every page of a snapshot and make the pipeline's join with it, or raise SnapshotError."""
    events = EventReader(pipeline.source.fields, pipeline.master.key).schema
    try:
        relation = PageFile(snapshot)
        relation.verify()
        construct_join(pipeline, events, relation, plan)
    except (ValueError, OSError) as error:
        raise SnapshotError(
            f"pipeline {pipeline.name!r} cannot be joined with its snapshot: {error}",
            f"Run the Dag {dag_of('refresh', pipeline.name)}, which publishes another snapshot.",
        ) from error
