"""Estimate from the stream how often each master row is asked for, and publish the rows in that order."""

from airflow.sdk import DAG

from plugins.operators.spark import SparkApplicationOperator
from plugins.operators.warehouse import PublishSnapshotOperator

with DAG("refresh_master_order", doc_md=__doc__, tags=["freshet"], schedule=None, max_active_runs=1):
    SparkApplicationOperator(
        task_id="estimate_frequency", program="estimate_frequency", pipeline="sales", short=True
    ) >> PublishSnapshotOperator(task_id="publish_snapshot", pipeline="sales")
