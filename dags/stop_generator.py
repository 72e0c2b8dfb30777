"""Stop the generator, and wait until it has sent what it holds and stopped.

| symptom | where to look | what to do |
| --- | --- | --- |
| it has not stopped in time | `generator-<pipeline>.log` in `logs/` of the state | see whether the broker answers, \
then run this Dag again; the wish to stop stays |
"""

from airflow.sdk import DAG

from plugins.defaults import TASKS
from plugins.operators.stream import StopProgramOperator

with DAG(
    "stop_generator",
    description="Stops the generator.",
    doc_md=__doc__,
    tags=["freshet"],
    schedule=None,
    default_args=TASKS,
):
    StopProgramOperator(task_id="stop", pipeline="sales", program="generator", retries=8, retry_delay=15)
