"""The ids of a pipeline's Dags (docs/pipelines.md): the demo's are plain, others have the pipeline's name behind."""

from __future__ import annotations

DEMO = "sales"


def dag_of(job: str, pipeline: str) -> str:
    """Return the id of a pipeline's own Dag for a job, for example enrich_stream."""
    return job if pipeline == DEMO else f"{job}_{pipeline}"
