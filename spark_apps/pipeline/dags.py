"""The ids of a pipeline's Dags: the pipeline's name, a dot, and the Dag's job."""

from __future__ import annotations

from typing import Literal

Job = Literal["prepare", "refresh", "enrich", "stop", "check", "watch", "announce"]


def dag_of(job: Job, pipeline: str) -> str:
    """Return the id of a pipeline's Dag, for example sales.enrich."""
    return f"{pipeline}.{job}"
