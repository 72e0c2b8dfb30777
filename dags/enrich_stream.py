"""Keep the Spark application that enriches the stream running, until the Dag stop_enrich_stream stops it.

The application runs apart from this Dag's task and survives a restart of Airflow. It restarts after a failure. A run is
skipped if the application runs already.

| symptom | where to look | what to do |
| --- | --- | --- |
| the run goes on for days | nowhere: it runs until it is stopped | trigger stop_enrich_stream to end it |
| the task is skipped | its log: it runs already, or was stopped since | trigger the Dag again to start a stopped one |
| the task has failed | its log has the application's last line | correct what it says, then trigger the Dag again |
| nothing lands | the Dag watch_stream; `enrich_stream-<pipeline>.log` in `logs/` of the state | what it says |
"""

from airflow.sdk import DAG

from plugins.defaults import TASKS
from plugins.operators.stream import EnrichStreamOperator

with DAG(
    "enrich_stream",
    description="Keeps the Spark application that enriches the stream running.",
    doc_md=__doc__,
    tags=["freshet"],
    schedule=None,
    default_args=TASKS,
):
    EnrichStreamOperator(task_id="enrich", pipeline="sales", retries=3, retry_delay=5)
