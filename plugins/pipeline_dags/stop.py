"""Stop the application that enriches the stream after its current batch, and wait until it has stopped.

| symptom | where to look | what to do |
| --- | --- | --- |
| it has not stopped in time | `enrich_stream-<pipeline>.log` in `logs/` of the state | see whether the warehouse \
answers, then run this Dag again; the wish to stop stays |
"""

from __future__ import annotations

from plugins.defaults import TASKS
from plugins.operators.stream import StopProgramOperator
from plugins.pipeline_dags.dag import pipeline_dag


def stop(pipeline: str) -> None:
    """Make the Dag that stops the stream."""
    with pipeline_dag(
        "stop",
        pipeline,
        __doc__,
        description="Stops the stream after its current batch.",
        schedule=None,
        default_args=TASKS,
    ):
        StopProgramOperator(task_id="stop", pipeline=pipeline, program="enrich_stream", retries=8, retry_delay=15)
