"""The assets of a pipeline: what one Dag makes and another one uses. Airflow's asset graph shows them."""

from __future__ import annotations

from typing import Literal

from airflow.sdk import Asset

Kind = Literal["topic", "master", "estimate", "snapshot", "enriched", "quality"]


def asset(kind: Kind, pipeline: str) -> Asset:
    """Return one of a pipeline's assets.

    topic: the events. master: the master table. estimate: how often each master row is asked for. snapshot: the master
    rows in that order. enriched: the rows in the warehouse. quality: the results of quality checks.
    """
    return Asset(name=f"{kind} of {pipeline}", uri=f"freshet://{pipeline}/{kind}", group="freshet")
