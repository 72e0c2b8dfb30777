"""Airflow sensors that wait for the stream."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator
from airflow.sdk.exceptions import AirflowSensorTimeout

from foundation.connections import connect
from foundation.errors import NotInTimeError
from plugins.hooks.broker import BrokerHook
from plugins.hooks.warehouse import WarehouseHook
from plugins.one_line import RETRY_POLICY, one_line
from spark_apps.pipeline.definition import read_pipeline

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from airflow.sdk import Context


class StreamSensor(BaseSensorOperator):
    """A sensor that waits without a worker's slot, and fails with one line."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"mode": "reschedule", "retry_policy": RETRY_POLICY, **kwargs})

    def execute(self, context: Context) -> Any:  # what the sensor returns
        """Look once."""
        with one_line():
            try:
                return super().execute(context)
            except AirflowSensorTimeout:
                raise NotInTimeError(
                    f"{self.task_id}: it did not come true within {self.timeout:g} s",
                    "Its log says how far it came; type: make status",
                ) from None


class TopicEventsSensor(StreamSensor):
    """Waits until a pipeline's topic has at least `events` events."""

    def __init__(self, *, pipeline: str, events: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline
        self.events = events

    def poke(self, context: Context) -> bool:
        """Return whether there are so many events now."""
        from spark_apps.monitoring.lag import Lag  # the Kafka client, only where it is used

        with closing(Lag(BrokerHook().bootstrap(), read_pipeline(self.pipeline).source.topic)) as lag:
            present = lag.behind({})
        self.log.info("%d events in the topic, waiting for %d", present, self.events)
        return present >= self.events


class EnrichedRowsSensor(StreamSensor):
    """Waits until the warehouse has at least `rows` enriched sales that were sold since a moment."""

    template_fields: Sequence[str] = ("since",)

    def __init__(self, *, rows: int, since: str | datetime, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rows = rows
        self.since = since

    def poke(self, context: Context) -> bool:
        """Return whether there are so many sales now."""
        with connect(WarehouseHook("reader").login()) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT COUNT(*) FROM sales_enriched WHERE sold_at >= %s", (str(self.since)[:19],))
            ((present,),) = cursor.fetchall()
        self.log.info("%d enriched rows of sales since %s, waiting for %d", present, self.since, self.rows)
        return bool(present >= self.rows)
