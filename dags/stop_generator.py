"""Stop the generator, and wait until it has sent what it holds and stopped."""

from airflow.sdk import DAG

from plugins.operators.stream import StopProgramOperator

with DAG("stop_generator", doc_md=__doc__, tags=["freshet"], schedule=None):
    StopProgramOperator(task_id="stop", pipeline="sales", program="generator", retries=2, retry_delay=2)
