"""Publish the master rows in the order of their access frequency, which is estimated from the stream.

If the Airflow task `check` fails, its log names the reason, and the published version stays in use.
"""

from airflow.sdk import DAG, Param

from plugins.operators.master import CheckMasterOperator, PublishMasterOperator, RankMasterOperator
from plugins.operators.spark import SparkApplicationOperator

with DAG(
    "refresh_master_order",
    doc_md=__doc__,
    tags=["freshet"],
    schedule=None,
    max_active_runs=1,
    params={
        "minutes": Param(60, type="number", exclusiveMinimum=0, description="Look back this many minutes at most."),
        "half_life": Param(60, type="number", exclusiveMinimum=0, description="Minutes until an event counts half."),
        "keep": Param(1_000_000, type="integer", minimum=1, description="Largest number of keys with an estimate."),
        "least_share": Param(
            0.9,
            type="number",
            minimum=0,
            description="Fail with fewer rows than this share of the published ones; 0 accepts any loss of rows.",
        ),
    },
):
    ranked = RankMasterOperator(task_id="rank", pipeline="sales")
    (
        SparkApplicationOperator(
            task_id="estimate_frequency",
            program="estimate_frequency",
            pipeline="sales",
            options={
                "minutes": "{{ params.minutes }}",
                "half-life": "{{ params.half_life }}",
                "keep": "{{ params.keep }}",
            },
        )
        >> ranked
        >> CheckMasterOperator(
            task_id="check", pipeline="sales", ranking=ranked.output, least_share="{{ params.least_share }}"
        )
        >> PublishMasterOperator(task_id="publish", pipeline="sales", ranking=ranked.output)
    )
