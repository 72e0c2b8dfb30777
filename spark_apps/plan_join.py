"""Print which join suits a pipeline: `python -m spark_apps.plan_join --pipeline sales`, or `make plan PIPELINE=sales`.

It takes R from the published snapshot, the skew from the stored estimate, and the memory from the pipeline's file.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import pymysql
from semistream import PageFile
from semistream.planning.machine import DEVICES

from foundation.connections import login
from foundation.errors import FreshetError, SnapshotError
from foundation.settings import settings
from spark_apps.enriching.planning import device_of, plans
from spark_apps.enriching.worker_join import parameters
from spark_apps.master.snapshots import current
from spark_apps.pipeline.dags import dag_of
from spark_apps.pipeline.definition import read_pipeline
from spark_apps.running.failures import one_line

if TYPE_CHECKING:
    from pathlib import Path

    from foundation.connections import Login
    from spark_apps.pipeline.definition import Pipeline


def plan(reader: Login, pipeline: Pipeline, snapshots: Path, device: str | None = None) -> str:
    """Return the plans of all joins for a pipeline, and how its snapshot is joined, as text.

    Args:
        reader: an account that reads the estimate.
        pipeline: its definition.
        snapshots: the folder of its snapshots.
        device: what the snapshot is on, a name in `semistream.planning.machine.DEVICES`; None for what it seems to be.

    Raises:
        SnapshotError: nothing was published yet.
    """
    snapshot = current(snapshots)
    if snapshot is None:
        refresh = dag_of("refresh", pipeline.name)
        raise SnapshotError(f"no snapshot in {snapshots}", f"Run the Dag {refresh}, which publishes one.")
    device = device or device_of(snapshot.path)
    with PageFile(snapshot.path) as relation:
        text = plans(reader, pipeline, relation, device).as_text()
    used = parameters(pipeline, snapshot.plan)
    return (
        f"{text} The rates are those of one task on one core.\n"
        f"{pipeline.name} joins with version {snapshot.version} by {used.join}: {used.reason}"
    )


def main() -> None:
    """Print the plans of one pipeline."""
    parser = argparse.ArgumentParser(prog="python -m spark_apps.plan_join", description=__doc__)
    parser.add_argument("--pipeline", default="sales", help="the name of a file in pipelines/ (default: sales)")
    parser.add_argument("--device", choices=tuple(DEVICES), help="what the snapshot is on (default: what it seems)")
    asked = parser.parse_args()
    try:
        pipeline, config = read_pipeline(asked.pipeline), settings()
        print(plan(login("reader", config), pipeline, config.folders.snapshots(pipeline.name), asked.device))
    except (FreshetError, pymysql.MySQLError, ValueError) as error:
        sys.exit(f"plan_join: {one_line(error)}")


if __name__ == "__main__":
    main()
