"""Batches with any counts at any time, written into the tables as the application writes them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foundation.connections import connect, login
from spark_apps.master.snapshots import Snapshot
from spark_apps.monitoring.batch_counters import BatchCounters, ShedBacklog
from spark_apps.pipeline.definition import read_pipeline
from spark_apps.pipeline.topics import create_topics

if TYPE_CHECKING:
    from foundation.settings import Settings
    from spark_apps.monitoring.task_counts import TaskCounts

NO_SHED = ShedBacklog()


class Batches:
    """The counters of a pipeline without an application: a test says what each batch counted, and when it ended.

    Args:
        config: the settings of the test run's services.
        name: the pipeline's name and topic.
    """

    def __init__(self, config: Settings, name: str) -> None:
        pipeline = read_pipeline("sales")
        source = pipeline.source.model_copy(update={"topic": name})
        self.pipeline = pipeline.model_copy(update={"name": name, "source": source})
        create_topics(config.kafka_bootstrap, self.pipeline)
        self.owner, self.reader, self.name = login("owner", config), login("reader", config), name
        self._now = 0.0
        self.counters = BatchCounters(config, self.pipeline, lambda: datetime.fromtimestamp(self._now, UTC))
        self.clear()

    def clear(self) -> None:
        """Delete the pipeline's rows and rollups."""
        for table in ("batch_counters", "counter_rollup", "program_start"):
            self.run(f"DELETE FROM {table} WHERE pipeline = '{self.name}'")

    def run(self, statement: str) -> None:
        """Run a statement as the owner."""
        with connect(self.owner) as connection, connection.cursor() as cursor:
            cursor.execute(statement)

    def ask(self, query: str) -> list[dict[str, Any]]:
        """Return rows as dicts; JSON columns are parsed."""
        with connect(self.owner) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            names = [column[0] for column in cursor.description or ()]
            return [{name: parsed(value) for name, value in zip(names, row, strict=True)} for row in cursor.fetchall()]

    def end(self, at: float, counts: TaskCounts, seconds: float = 1.0, version: int = 1) -> None:
        """Queue the row of a batch that ended at a Unix time, joined with a snapshot that was 60 s old."""
        self._now = at
        published = datetime.fromtimestamp(at - 60, UTC).isoformat()
        self.counters.add(1, 1, Snapshot(version, Path(), 0, 0, None, published), seconds, counts)

    def rollups(self, step: int) -> dict[int, dict[str, Any]]:
        """Return the rollups of a step by the Unix time of their beginning."""
        rows = self.ask(
            "SELECT TIMESTAMPDIFF(SECOND, '1970-01-01', at) AS at, counts FROM counter_rollup "
            f"WHERE pipeline = '{self.name}' AND step_seconds = {step} ORDER BY at"
        )
        return {row["at"]: row["counts"] for row in rows}

    def write(self, shed: ShedBacklog = NO_SHED) -> None:
        """Write the queued rows."""
        self.counters.look(1, shed)


def parsed(value: Any) -> Any:  # noqa: ANN401  # any column
    """Return the value of a JSON column as Python's, any other as it is."""
    return json.loads(value) if isinstance(value, str) and value.startswith("{") else value
