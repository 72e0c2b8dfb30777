"""Check the enriched rows against their Great Expectations suite, after new rows and after each new snapshot.

An expectation that is not met fails the Airflow task, whose log names the expectation. The Dag watch_stream is red
until a check finds all of them met.

| symptom | where to look | what to do |
| --- | --- | --- |
| an expectation is not met | the log of the task names it; the table `quality_check` keeps it | correct the rows or \
`quality/suites/sales_enriched.json`, then trigger this Dag |
| it is skipped | the log of the task: no table, or no row yet | nothing; it runs when rows have landed |
| it does not run | the Dag announce_rows: it is green when rows have landed | unpause both; start the stream |
"""

from airflow.sdk import DAG

from plugins.assets import asset
from plugins.defaults import ENDING_TASKS
from plugins.operators.quality import CheckQualityOperator

with DAG(
    "check_quality",
    description="Checks the enriched rows with Great Expectations.",
    doc_md=__doc__,
    tags=["freshet"],
    schedule=asset("enriched", "sales") | asset("snapshot", "sales"),
    max_active_runs=1,
    default_args=ENDING_TASKS,
):
    CheckQualityOperator(task_id="check_sales_enriched", pipeline="sales", suite="sales_enriched")
