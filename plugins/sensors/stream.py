"""Airflow sensors that wait for the stream."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator

from foundation.connections import connect
from plugins.hooks.broker import BrokerHook
from plugins.hooks.warehouse import WarehouseHook
from plugins.one_line import one_line
from spark_apps.pipeline.definition import read_pipeline

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from airflow.sdk import Context


class TopicEventsSensor(BaseSensorOperator):
    """Waits until a pipeline's topic has at least `events` events."""

    def __init__(self, *, pipeline: str, events: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline
        self.events = events

    def poke(self, context: Context) -> bool:
        """Return whether there are so many events now."""
        from spark_apps.monitoring.lag import Lag  # the Kafka client, only where it is used

        with one_line(), closing(Lag(BrokerHook().bootstrap(), read_pipeline(self.pipeline).source.topic)) as lag:
            present = lag.behind({})
        self.log.info("%d events in the topic, waiting for %d", present, self.events)
        return present >= self.events


class EnrichedRowsSensor(BaseSensorOperator):
    """Waits until the warehouse has at least `rows` enriched sales that were sold since a moment."""

    template_fields: Sequence[str] = ("since",)

    def __init__(self, *, rows: int, since: str | datetime, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rows = rows
        self.since = since

    def poke(self, context: Context) -> bool:
        """Return whether there are so many sales now."""
        with one_line(), connect(WarehouseHook("reader").login()) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT COUNT(*) FROM sales_enriched WHERE sold_at >= %s", (str(self.since)[:19],))
            ((present,),) = cursor.fetchall()
        self.log.info("%d enriched rows of sales since %s, waiting for %d", present, self.since, self.rows)
        return bool(present >= self.rows)
