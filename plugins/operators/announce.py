"""Tasks that announce new rows, because a task that runs for ever announces nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowSkipException
from airflow.sdk.execution_time.context import InletEventsAccessors

from foundation.connections import connect
from plugins.assets import asset
from plugins.hooks.warehouse import WarehouseHook
from plugins.operators.base import PipelineOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from foundation.connections import Login

EVER = datetime(1970, 1, 1, tzinfo=UTC)


class AnnounceRowsOperator(PipelineOperator):
    """Announces enriched rows by its success; it is skipped if none have landed since the newest announcement."""

    writes = ("enriched",)

    def work(self, context: Context) -> None:
        """Count the rows of the batches since then."""
        enriched = asset("enriched", self.pipeline)
        newest = next(iter(InletEventsAccessors([enriched])[enriched].ascending(ascending=False).limit(1)), None)
        since = (
            EVER if newest is None else datetime.fromisoformat(str((newest.extra or {}).get("until", newest.timestamp)))
        )
        rows, until = landed(WarehouseHook("reader").login(), self.pipeline, since)
        if not rows:
            self.log.info("no new rows since %s", since)
            raise AirflowSkipException("no new rows")
        self.log.info("%d new rows since %s", rows, since)
        context["outlet_events"][enriched].extra = {"rows": rows, "until": until.isoformat()}


def landed(reader: Login, pipeline: str, since: datetime) -> tuple[int, datetime]:
    """Return how many rows the batches after a moment have enriched, and when the newest of them ended."""
    with connect(reader) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT COUNT(*) FROM information_schema.tables "
            "WHERE table_schema = DATABASE() AND table_name = 'batch_counters'"
        )
        if cursor.fetchall() == ((0,),):
            return 0, since
        cursor.execute(
            "SELECT COALESCE(SUM(enriched), 0), MAX(finished_at) FROM batch_counters "
            "WHERE pipeline = %s AND finished_at > %s",
            (pipeline, since.astimezone(UTC).replace(tzinfo=None)),
        )
        ((rows, until),) = cursor.fetchall()
    return int(rows), until.replace(tzinfo=UTC) if until else since
