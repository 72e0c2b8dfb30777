"""Keep the Spark application that enriches the stream running, until the Dag <pipeline>.stop stops it.

The application runs apart from this Dag's task and survives a restart of Airflow. It restarts after a failure. A run is
skipped if the application runs already.

| symptom | where to look | what to do |
| --- | --- | --- |
| the run goes on for days | nowhere: it runs until it is stopped | trigger <pipeline>.stop to end it |
| the task is skipped | its log: it runs already, or was stopped since | trigger the Dag again to start a stopped one |
| the task has failed | its log has the application's last line | correct what it says, then trigger the Dag again |
| nothing lands | the Dag <pipeline>.watch; `enrich_stream-<pipeline>.log` in `logs/` of the state | what it says |
"""

from __future__ import annotations

from plugins.defaults import TASKS
from plugins.operators.stream import EnrichStreamOperator
from plugins.pipeline_dags.dag import pipeline_dag


def enrich(pipeline: str) -> None:
    """Make the Dag that keeps the stream running."""
    with pipeline_dag(
        "enrich",
        pipeline,
        __doc__,
        description="Keeps the Spark application that enriches the stream running.",
        schedule=None,
        default_args=TASKS,
    ):
        EnrichStreamOperator(task_id="enrich", pipeline=pipeline, retries=3, retry_delay=5)
