"""Check the enriched rows against their Great Expectations suite.

An expectation that is not met fails the Airflow task, whose log names the expectation.
"""

from airflow.sdk import DAG

from plugins.operators.quality import CheckQualityOperator

with DAG("check_quality", doc_md=__doc__, tags=["freshet"], schedule=None, max_active_runs=1):
    CheckQualityOperator(task_id="check_sales_enriched", suite="sales_enriched")
