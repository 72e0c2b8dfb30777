"""Announce enriched rows that have landed, every ten minutes, so that the quality check follows them.

A task that runs for ever announces nothing, so this one does it for the stream.

| symptom | where to look | what to do |
| --- | --- | --- |
| it is skipped | the Dag watch_stream says whether the stream runs | start the stream, if you want it |
| it fails | the log of the task | see whether the warehouse answers: `make status` |
"""

from datetime import timedelta

from airflow.sdk import DAG

from plugins.defaults import QUICK_TASKS
from plugins.operators.announce import AnnounceRowsOperator

with DAG(
    "announce_rows",
    description="Tells Airflow every ten minutes that enriched rows have landed.",
    doc_md=__doc__,
    tags=["freshet"],
    schedule=timedelta(minutes=10),
    catchup=False,
    max_active_runs=1,
    default_args=QUICK_TASKS,
):
    AnnounceRowsOperator(task_id="announce", pipeline="sales")
