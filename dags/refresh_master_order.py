"""Estimate from the stream how often each master row is asked for; rank, check and publish the rows in that order.

When the check refuses, the task fails with the reason, and the version in use stays in use.
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
        "minutes": Param(60, type="number", exclusiveMinimum=0, description="Look back so far at most."),
        "half_life": Param(60, type="number", exclusiveMinimum=0, description="Minutes until an event counts half."),
        "keep": Param(1_000_000, type="integer", minimum=1, description="How many keys have an estimate at most."),
        "least_share": Param(
            0.9,
            type="number",
            minimum=0,
            description="Refuse fewer rows than this share of the published ones; 0 when so many were meant to go.",
        ),
    },
):
    ranked = RankMasterOperator(task_id="rank", pipeline="sales")
    (
        SparkApplicationOperator(
            task_id="estimate_frequency",
            program="estimate_frequency",
            pipeline="sales",
            short=True,
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
