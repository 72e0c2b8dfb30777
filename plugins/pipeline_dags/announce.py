"""Announce enriched rows that have landed, every ten minutes, so that the quality check follows them.

A task that runs for ever announces nothing, so this one does it for the stream.

| symptom | where to look | what to do |
| --- | --- | --- |
| it is skipped | the Dag <pipeline>.watch says whether the stream runs | start the stream, if you want it |
| it fails | the log of the task | see whether the warehouse answers: `make status` |
"""

from __future__ import annotations

from datetime import timedelta

from plugins.defaults import QUICK_TASKS
from plugins.operators.announce import AnnounceRowsOperator
from plugins.pipeline_dags.dag import pipeline_dag


def announce(pipeline: str) -> None:
    """Make the Dag that tells Airflow's assets of new rows."""
    with pipeline_dag(
        "announce",
        pipeline,
        __doc__,
        description="Tells Airflow every ten minutes that enriched rows have landed.",
        schedule=timedelta(minutes=10),
        max_active_runs=1,
        default_args=QUICK_TASKS,
    ):
        AnnounceRowsOperator(task_id="announce", pipeline=pipeline)
