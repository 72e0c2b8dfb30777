"""What the page shows of pipelines: each one's status now, and its counters over time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pymysql
from fastapi import HTTPException

from foundation.errors import FreshetError
from plugins.hooks.broker import BrokerHook
from plugins.hooks.warehouse import WarehouseHook
from plugins.page import buttons
from spark_apps.monitoring.series import RANGES, read_marks, read_series
from spark_apps.pipeline.dags import dag_of
from spark_apps.pipeline.definition import pipeline_names, read_pipeline
from spark_apps.running.alarms import Bounds, alarms
from spark_apps.running.status import status_of
from spark_apps.running.wish import read_wish
from spark_apps.warehouse.version import tables_are_missing

if TYPE_CHECKING:
    from foundation.connections import Login

State = dict[str, Any]


def of_all() -> list[State]:
    """Return the state of every pipeline that has a file."""
    reader, bootstrap = WarehouseHook("reader").login(), BrokerHook().bootstrap()
    return [_of_one(reader, bootstrap, name) for name in pipeline_names()]


def _of_one(reader: Login, bootstrap: str, name: str) -> State:
    """Return a pipeline's state; an error in its file, or tables that are missing, are its state."""
    try:
        pipeline = read_pipeline(name)
        status = status_of(reader, bootstrap, pipeline)
        generator = read_wish(reader, name, "generator")
        found = alarms(reader, status, Bounds(), paused_dag=buttons.paused_start(name))
    except FreshetError as error:
        return {"name": name, "kind": "unreadable", "is_well": False, "sentence": str(error)}
    except pymysql.MySQLError as error:
        if not tables_are_missing(error):
            raise
        prepare = dag_of("prepare", name)
        sentence = f"{name}: not prepared; its tables do not exist yet. To create them, trigger the Dag {prepare}."
        return {"name": name, "kind": "not prepared", "is_well": True, "sentence": sentence}
    return {
        "name": name,
        "kind": status.kind,
        "is_well": status.is_well and not found,
        "sentence": str(status),
        "alarms": found,
        "waiting": status.waiting,
        "behind_seconds": status.behind_seconds,
        "last_batch_seconds": status.last_batch_seconds,
        "starts": status.starts,
        "generator": "runs" if generator and generator.running else "is stopped",
        "batch_budget_seconds": pipeline.batch_seconds,
    }


def series(pipeline: str, span: str, since: float) -> State:
    """Return a pipeline's counters over a span of time, and the starts and failures in it."""
    if span not in RANGES:
        raise HTTPException(422, f"span must be one of {', '.join(RANGES)}, got {span!r}")
    reader, name = WarehouseHook("reader").login(), read_pipeline(pipeline).name
    try:
        return {**read_series(reader, name, span, since), "marks": read_marks(reader, name, span), "now": time.time()}
    except pymysql.MySQLError as error:
        if not tables_are_missing(error):
            raise
        return {"at": [], "marks": [], "now": time.time()}
