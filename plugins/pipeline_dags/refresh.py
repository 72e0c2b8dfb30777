"""Publish the master rows in the order of their access frequency, which is estimated from the stream, every night.

If the Airflow task `check` fails, its log names the reason, and the published version stays in use. A scheduled run is
skipped while the stream is not wanted; a run that you trigger always works.

| symptom | where to look | what to do |
| --- | --- | --- |
| all tasks are skipped | the log of estimate_frequency | nothing: the stream is not wanted, or there are no tables |
| estimate_frequency fails | its log has Spark's last line | see whether the broker answers: `make status` |
| check fails | its log names the expectation; the copy `<table>_by_rank_next` stays | correct the master rows; \
if most rows were meant to go, trigger the Dag with a smaller least_share |
| publish was killed | the log of the task | clear the task |
"""

from __future__ import annotations

from airflow.sdk import Param

from plugins.assets import asset
from plugins.defaults import ENDING_TASKS
from plugins.operators.master import CheckMasterOperator, PublishMasterOperator, RankMasterOperator
from plugins.operators.needed import if_stream_is_wanted
from plugins.operators.spark import SparkApplicationOperator
from plugins.pipeline_dags.dag import pipeline_dag

PARAMS = {
    "minutes": Param(
        60, type="number", exclusiveMinimum=0, maximum=525_600, description="Look back this many minutes at most."
    ),
    "half_life": Param(
        60, type="number", exclusiveMinimum=0, maximum=525_600, description="Minutes until an event counts half."
    ),
    "keep": Param(
        1_000_000,
        type="integer",
        minimum=1,
        maximum=100_000_000,
        description="Largest number of keys with an estimate.",
    ),
    "least_share": Param(
        0.9,
        type="number",
        minimum=0,
        maximum=10,
        description="Fail with fewer rows than this share of the published ones; 0 accepts any loss of rows.",
    ),
}


def refresh(pipeline: str) -> None:
    """Make the Dag that publishes the master rows in a new order."""
    with pipeline_dag(
        "refresh",
        pipeline,
        __doc__,
        description="Publishes the master rows in the order of their access frequency.",
        schedule="17 3 * * *",
        max_active_runs=1,
        default_args=ENDING_TASKS,
        params=PARAMS,
    ):
        ranked = RankMasterOperator(task_id="rank", pipeline=pipeline)
        (
            SparkApplicationOperator(
                task_id="estimate_frequency",
                program="estimate_frequency",
                pipeline=pipeline,
                pre_execute=if_stream_is_wanted(pipeline),
                inlets=[asset("topic", pipeline)],
                outlets=[asset("estimate", pipeline)],
                options={
                    "minutes": "{{ params.minutes }}",
                    "half-life": "{{ params.half_life }}",
                    "keep": "{{ params.keep }}",
                },
            )
            >> ranked
            >> CheckMasterOperator(
                task_id="check", pipeline=pipeline, ranking=ranked.output, least_share="{{ params.least_share }}"
            )
            >> PublishMasterOperator(task_id="publish", pipeline=pipeline, ranking=ranked.output)
        )
