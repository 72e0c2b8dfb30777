"""Stop the application that enriches the stream after its current batch, and wait until it has stopped."""

from airflow.sdk import DAG

from plugins.operators.stream import StopProgramOperator

with DAG("stop_enrich_stream", doc_md=__doc__, tags=["freshet"], schedule=None):
    StopProgramOperator(task_id="stop", pipeline="sales", program="enrich_stream", retries=2, retry_delay=2)
