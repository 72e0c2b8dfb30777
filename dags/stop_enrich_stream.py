"""Stop the application that enriches the stream after its current batch, and wait until it has stopped."""

from airflow.sdk import DAG

from plugins.operators.stream import RequestStopOperator
from plugins.sensors.stream import StreamStoppedSensor

with DAG("stop_enrich_stream", doc_md=__doc__, tags=["freshet"], schedule=None, max_active_runs=1):
    RequestStopOperator(task_id="request_stop", pipeline="sales") >> StreamStoppedSensor(
        task_id="wait_until_stopped", pipeline="sales", poke_interval=1, timeout=300
    )
