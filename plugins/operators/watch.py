"""Tasks that watch a pipeline's stream, and are red when it is not well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pymysql

from foundation.errors import StreamError
from plugins.hooks.broker import BrokerHook
from plugins.hooks.warehouse import WarehouseHook
from plugins.operators.base import PipelineOperator
from spark_apps.pipeline.dags import dag_of
from spark_apps.running.alarms import Bounds, alarms

if TYPE_CHECKING:
    from airflow.sdk import Context


class WatchStreamOperator(PipelineOperator):
    """Fails with one line that says what is wrong with a pipeline's stream, and what to do."""

    reads = ("enriched", "snapshot", "quality")

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
            prepare = dag_of("prepare", self.pipeline)
            self.log.info("no tables yet, so nothing is wanted. The Dag %s creates them.", prepare)
            return
        self.log.info("%s", status)
        check_version(loader)
        stream = dag_of("enrich", self.pipeline)
        paused = stream if context["ti"].get_dag(stream).is_paused else ""
        found = alarms(loader, status, Bounds(), paused_dag=paused)
        if not status.is_well:
            found.insert(0, str(status))
        if found:
            raise StreamError("; ".join(found), "The page of this Dag has a runbook.")
