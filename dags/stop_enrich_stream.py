"""Stop the application that enriches the stream after its current batch, and wait until it has stopped.

| symptom | where to look | what to do |
| --- | --- | --- |
| it has not stopped in time | `enrich_stream-<pipeline>.log` in `logs/` of the state | see whether the warehouse \
answers, then run this Dag again; the wish to stop stays |
"""

from airflow.sdk import DAG

from plugins.defaults import TASKS
from plugins.operators.stream import StopProgramOperator

with DAG(
    "stop_enrich_stream",
    description="Stops the stream after its current batch.",
    doc_md=__doc__,
    tags=["freshet"],
    schedule=None,
    default_args=TASKS,
):
    StopProgramOperator(task_id="stop", pipeline="sales", program="enrich_stream", retries=8, retry_delay=15)
