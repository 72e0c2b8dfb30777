"""Whether a scheduled run has anything to do."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pymysql
from airflow.sdk.exceptions import AirflowSkipException

from plugins.hooks.warehouse import WarehouseHook
from plugins.one_line import one_line
from spark_apps.pipeline.dags import dag_of
from spark_apps.running.wish import read_wish
from spark_apps.warehouse.version import tables_are_missing

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow.sdk import Context

log = logging.getLogger(__name__)


def if_stream_is_wanted(pipeline: str) -> Callable[[Context], None]:
    """Return a function that skips a task of a scheduled run while nobody wants the pipeline's stream."""

    def skip_if_not_wanted(context: Context) -> None:
        if context["dag_run"].run_type != "scheduled":
            return
        with one_line():
            why = not_wanted(pipeline)
        if why:
            log.info("nothing to do: %s", why)
            raise AirflowSkipException(why)

    return skip_if_not_wanted


def not_wanted(pipeline: str) -> str:
    """Return why a pipeline's stream is not wanted; an empty text if it is."""
    try:
        wish = read_wish(WarehouseHook("loader").login(), pipeline, "enrich_stream")
    except pymysql.MySQLError as error:
        if not tables_are_missing(error):
            raise
        return f"there are no tables yet. The Dag {dag_of('prepare', pipeline)} creates them."
    if wish is None or not wish.running:
        return f"the stream of pipeline {pipeline!r} is not wanted. The Dag {dag_of('enrich', pipeline)} starts it."
    return ""
