"""Run the Spark application that enriches the stream, until the Dag stop_enrich_stream stops it.

Airflow restarts it after a failure.
"""

from datetime import timedelta

from airflow.sdk import DAG

from plugins.operators.spark import SparkApplicationOperator

with DAG("enrich_stream", doc_md=__doc__, tags=["freshet"], schedule=None, max_active_runs=1):
    SparkApplicationOperator(
        task_id="enrich",
        program="enrich_stream",
        pipeline="sales",
        metered=True,
        retries=1_000_000,  # practically without limit: the application restarts after every failure
        retry_delay=timedelta(seconds=5),
    )
