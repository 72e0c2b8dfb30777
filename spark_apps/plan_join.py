"""Print which join suits a pipeline: `python -m spark_apps.plan_join --pipeline sales`, or `make plan PIPELINE=sales`.

It takes R from the published snapshot, the skew from the stored estimate, and the memory from the pipeline's file.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import numpy as np
import pymysql
from semistream import PageFile
from semistream.planning import Workload
from semistream.planning.explain import as_text
from semistream.planning.fit import fit_exponent
from semistream.planning.machine import DEVICES, on_this_processor
from semistream.planning.tuner import best_of_each

from foundation.connections import login
from foundation.errors import FreshetError, SnapshotError
from foundation.settings import settings
from spark_apps.enriching.task_join import joined_part
from spark_apps.events.reader import EventReader
from spark_apps.master.frequency import WEIGHT, read_estimate
from spark_apps.master.snapshots import current
from spark_apps.pipeline.definition import read_pipeline
from spark_apps.running.failures import one_line

if TYPE_CHECKING:
    from pathlib import Path

    from foundation.connections import Login
    from spark_apps.pipeline.definition import Pipeline

NOT_COUNTED = 1.0  # the exponent while there is no estimate: a few products make most sales
MEGABYTE = 1024 * 1024


def plan(reader: Login, pipeline: Pipeline, snapshots: Path, device: str) -> str:
    """Return the plans of all joins for a pipeline, as text.

    Args:
        reader: an account that reads the estimate.
        pipeline: its definition.
        snapshots: the folder of its snapshots.
        device: what the snapshot is on: a name in `semistream.planning.machine.DEVICES`.

    Raises:
        SnapshotError: nothing was published yet.
    """
    snapshot = current(snapshots)
    if snapshot is None:
        raise SnapshotError(f"no snapshot in {snapshots}", "Run the Dag refresh_master_order, which publishes one.")
    estimate = read_estimate(reader, pipeline.master)
    with PageFile(snapshot.path) as relation:
        weights = np.sort(estimate.weights[WEIGHT].to_numpy())[::-1]
        is_counted = len(weights) > 0 and estimate.total > 0
        exponent = fit_exponent(weights / estimate.total, relation.row_count) if is_counted else NOT_COUNTED
        workload = Workload(
            rows=relation.row_count,
            row_bytes=-(-relation.page_bytes // min(relation.page_rows, relation.row_count)),
            exponent=exponent,
            order="frequency",
            master=relation.schema,
            key=relation.key,
            stream=joined_part(EventReader(pipeline.source.fields, pipeline.master.key).schema, pipeline.master.key),
            on=tuple(pipeline.master.key),
        )
        memory = pipeline.memory_mb * MEGABYTE
        found = best_of_each(workload, memory, on_this_processor(device), page_rows=relation.page_rows)
    if not found:
        return f"{pipeline.name}: no join fits into {memory:,} bytes with pages of {relation.page_rows:,} rows."
    source = "counted by the estimate" if is_counted else "not counted yet, so taken for 1"
    text = as_text(found, workload, memory)
    return f"{text}\nThe exponent is {source}. {pipeline.name} uses {pipeline.join}, for one task on one core."


def main() -> None:
    """Print the plans of one pipeline."""
    parser = argparse.ArgumentParser(prog="python -m spark_apps.plan_join", description=__doc__)
    parser.add_argument("--pipeline", default="sales", help="the name of a file in pipelines/ (default: sales)")
    parser.add_argument("--device", choices=tuple(DEVICES), default="ssd", help="what the snapshot is on")
    asked = parser.parse_args()
    try:
        pipeline, config = read_pipeline(asked.pipeline), settings()
        print(plan(login("reader", config), pipeline, config.folders.snapshots(pipeline.name), asked.device))
    except (FreshetError, pymysql.MySQLError, ValueError) as error:
        sys.exit(f"plan_join: {one_line(error)}")


if __name__ == "__main__":
    main()
