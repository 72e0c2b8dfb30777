"""Waiting for what the stream does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator

from plugins.hooks.warehouse import WarehouseHook
from services.warehouse import connect
from spark_apps.control import is_running

if TYPE_CHECKING:
    from airflow.sdk import Context


class StreamStoppedSensor(BaseSensorOperator):
    """Waits until no application works on a pipeline."""

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline

    def poke(self, context: Context) -> bool:
        """Look once."""
        return not is_running(WarehouseHook("loader").login(), self.pipeline)


class EnrichedRowsSensor(BaseSensorOperator):
    """Waits until analysts can see at least so many enriched rows."""

    def __init__(self, *, rows: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rows = rows

    def poke(self, context: Context) -> bool:
        """Look once."""
        with connect(WarehouseHook("reader").login()) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT COUNT(*) FROM sales_enriched")
            ((present,),) = cursor.fetchall()
        self.log.info("%d enriched rows, waiting for %d", present, self.rows)
        return bool(present >= self.rows)
