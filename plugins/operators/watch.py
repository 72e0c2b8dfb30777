"""Tasks that watch a pipeline's stream, and are red when it is not well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pymysql
from airflow.sdk.exceptions import AirflowRuntimeError

from foundation.errors import StreamError
from plugins.hooks.broker import BrokerHook
from plugins.hooks.warehouse import WarehouseHook
from plugins.operators.base import PipelineOperator
from spark_apps.running.alarms import Bounds, alarms

if TYPE_CHECKING:
    from airflow.sdk import Context


class WatchStreamOperator(PipelineOperator):
    """Fails with one line that says what is wrong with a pipeline's stream, and what to do.

    Args:
        stream_dag: the Dag that keeps the stream running.
        bounds: from where on a value is wrong; by default those that Freshet's page uses.
        **kwargs: `pipeline`, and Airflow's own.
    """

    reads = ("enriched", "snapshot", "quality")

    def __init__(
        self,
        *,
        stream_dag: str = "enrich_stream",
        bounds: Bounds | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.stream_dag = stream_dag
        self.bounds = bounds or Bounds()

    def work(self, context: Context) -> None:
        """Look once."""
        from spark_apps.running.status import status_of
        from spark_apps.warehouse.version import check_version, tables_are_missing

        loader = WarehouseHook("loader").login()
        try:
            status = status_of(loader, BrokerHook().bootstrap(), self.definition())
        except pymysql.MySQLError as error:
            if not tables_are_missing(error):
                raise
            self.log.info("no tables yet, so nothing is wanted. The Dag prepare_warehouse creates them.")
            return
        self.log.info("%s", status)
        check_version(loader)
        paused = self.stream_dag if self._is_paused(context) else ""
        found = alarms(loader, status, self.bounds, paused_dag=paused)
        if not status.is_well:
            found.insert(0, str(status))
        if found:
            raise StreamError("; ".join(found), "The page of this Dag has a runbook.")

    def _is_paused(self, context: Context) -> bool:
        try:
            return context["ti"].get_dag(self.stream_dag).is_paused
        except AirflowRuntimeError as error:
            raise StreamError(
                f"stream_dag must be a Dag of this Airflow, got {self.stream_dag!r}", "Correct it in the Dag's file."
            ) from error
