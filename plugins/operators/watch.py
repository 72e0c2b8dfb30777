"""Tasks that watch a pipeline's stream, and are red when it is not well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pymysql

from foundation.errors import StreamError
from plugins.hooks.broker import BrokerHook
from plugins.hooks.warehouse import WarehouseHook
from plugins.operators.base import PipelineOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


class WatchStreamOperator(PipelineOperator):
    """Fails with one line that says what is wrong with a pipeline's stream, and what to do.

    Args:
        most_snapshot_hours: the oldest age of the master data's snapshot.
        most_rejected: the largest share of events of the last ten minutes that cannot be read.
        most_unmatched: the same, of events that no master row matches.
        **kwargs: `pipeline`, and Airflow's own.
    """

    def __init__(
        self,
        *,
        most_snapshot_hours: float = 48.0,
        most_rejected: float = 0.05,
        most_unmatched: float = 0.2,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.most_snapshot_hours = most_snapshot_hours
        self.most_rejected = most_rejected
        self.most_unmatched = most_unmatched

    def work(self, context: Context) -> None:
        """Look once."""
        from spark_apps.running.alarms import Bounds, alarms
        from spark_apps.running.status import status_of

        loader = WarehouseHook("loader").login()
        try:
            status = status_of(loader, BrokerHook().bootstrap(), self.definition())
        except pymysql.ProgrammingError:
            self.log.info("no tables yet, so nothing is wanted. The Dag prepare_warehouse creates them.")
            return
        self.log.info("%s", status)
        bounds = Bounds(self.most_snapshot_hours, self.most_rejected, self.most_unmatched)
        found = [*([str(status)] if not status.is_well else []), *alarms(loader, status, bounds)]
        if found:
            raise StreamError("; ".join(found), "What to do about each is on the page of this Dag.")
