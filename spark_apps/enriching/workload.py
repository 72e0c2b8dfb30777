"""What a pipeline's join has to do, as the planner asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from semistream.planning import Workload

from spark_apps.enriching.task_join import joined_part
from spark_apps.events.reader import EventReader

if TYPE_CHECKING:
    from semistream import Relation

    from spark_apps.pipeline.definition import Pipeline


def workload_of(pipeline: Pipeline, relation: Relation, exponent: float) -> Workload:
    """Return the workload of one task: R from a snapshot, and the skew as Zipf's exponent."""
    return Workload(
        rows=relation.row_count,
        row_bytes=-(-relation.page_bytes // min(relation.page_rows, relation.row_count)),
        exponent=exponent,
        order="frequency",
        master=relation.schema,
        key=relation.key,
        stream=joined_part(EventReader(pipeline.source.fields, pipeline.master.key).schema, pipeline.master.key),
        on=tuple(pipeline.master.key),
        reads_rows=relation.reads_rows,
    )
