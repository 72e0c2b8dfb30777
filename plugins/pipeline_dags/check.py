"""Check the enriched rows with Great Expectations, after new rows and after each new snapshot.

An expectation that is not met fails the Airflow task, whose log names the expectation. The Dag <pipeline>.watch is red
until a check finds all of them met.

| symptom | where to look | what to do |
| --- | --- | --- |
| an expectation is not met | the log of the task names it; the table `quality_check` keeps it | correct the rows or \
`quality/suites/<pipeline>_enriched.json`, then trigger this Dag |
| it is skipped | the log of the task: no table, or no row yet | nothing; it runs when rows have landed |
| it does not run | the Dag <pipeline>.announce: it is green when rows have landed | unpause both; start the stream |
"""

from __future__ import annotations

from plugins.assets import asset
from plugins.defaults import ENDING_TASKS
from plugins.operators.quality import CheckQualityOperator
from plugins.pipeline_dags.dag import pipeline_dag


def check(pipeline: str) -> None:
    """Make the Dag that checks the enriched rows."""
    with pipeline_dag(
        "check",
        pipeline,
        __doc__,
        description="Checks the enriched rows with Great Expectations.",
        schedule=asset("enriched", pipeline) | asset("snapshot", pipeline),
        max_active_runs=1,
        default_args=ENDING_TASKS,
    ):
        CheckQualityOperator(task_id="check", pipeline=pipeline)
