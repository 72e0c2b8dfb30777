"""What all Dags of all pipelines have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG

from plugins.links import TAG
from spark_apps.pipeline.dags import dag_of

if TYPE_CHECKING:
    from spark_apps.pipeline.dags import Job


def pipeline_dag(job: Job, pipeline: str, runbook: str | None, *, schedule: Any, **kwargs: Any) -> DAG:
    """Return a pipeline's Dag for a job, still without tasks.

    Args:
        job: what it does.
        pipeline: the name of a file in pipelines/.
        runbook: its page in Airflow, with `<pipeline>` in place of the pipeline's name.
        schedule: when it runs by itself.
        **kwargs: Airflow's own.
    """
    return DAG(
        dag_of(job, pipeline),
        doc_md=(runbook or "").replace("<pipeline>", pipeline),
        tags=[TAG, pipeline],
        schedule=schedule,
        catchup=False,
        **kwargs,
    )
