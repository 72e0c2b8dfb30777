"""Tasks that prepare the warehouse and the broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from plugins.hooks.broker import BrokerHook
from plugins.hooks.warehouse import WarehouseHook
from spark_apps.pipeline.definition import load_pipeline
from spark_apps.warehouse.migrations import migrate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context


class MigrateOperator(BaseOperator):
    """Brings the warehouse's tables to this version."""

    def execute(self, context: Context) -> list[str]:
        """Apply what is missing and return its names."""
        applied = migrate(WarehouseHook("owner").login())
        self.log.info("applied: %s", ", ".join(applied) or "nothing, the tables are up to date")
        return applied


class CreateTablesOperator(BaseOperator):
    """Makes a pipeline's own tables that are missing, and its view."""

    template_fields: Sequence[str] = ("pipeline",)

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline

    def execute(self, context: Context) -> None:
        """Create them with the owner's rights."""
        from spark_apps.pipeline.tables import create_tables  # pyarrow, only where it is used

        create_tables(WarehouseHook("owner").login(), load_pipeline(self.pipeline))


class CreateTopicsOperator(BaseOperator):
    """Makes a pipeline's topics that are missing."""

    template_fields: Sequence[str] = ("pipeline",)

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline

    def execute(self, context: Context) -> list[str]:
        """Create and return the names."""
        from spark_apps.pipeline.topics import create_topics  # the Kafka client, only where it is used

        created = create_topics(BrokerHook().bootstrap(), load_pipeline(self.pipeline))
        self.log.info("created: %s", ", ".join(created) or "nothing, all topics are there")
        return created
