"""Keep the Spark application that enriches the stream running, until the Dag stop_enrich_stream stops it.

The application runs apart from this Dag's task and survives a restart of Airflow. It restarts after a failure.
"""

from airflow.sdk import DAG

from plugins.operators.stream import EnrichStreamOperator

with DAG("enrich_stream", doc_md=__doc__, tags=["freshet"], schedule=None):
    EnrichStreamOperator(task_id="enrich", pipeline="sales", retries=3, retry_delay=5)
