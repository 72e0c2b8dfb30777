"""Airflow tasks that prepare the warehouse and the broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugins.hooks.broker import BrokerHook
from plugins.hooks.warehouse import WarehouseHook
from plugins.operators.base import FreshetOperator, PipelineOperator

# What is slow to import (pyarrow, the Kafka client) is imported where it is used.

if TYPE_CHECKING:
    from airflow.sdk import Context


class MigrateOperator(FreshetOperator):
    """Migrates the tables that all pipelines share to this version of Freshet."""

    def work(self, context: Context) -> list[str]:
        """Apply the migrations that are missing and return their names."""
        from spark_apps.warehouse.migrations import migrate

        applied = migrate(WarehouseHook("owner").login())
        self.log.info("applied: %s", ", ".join(applied) or "nothing, the tables are up to date")
        return applied


class CreateTablesOperator(PipelineOperator):
    """Creates a pipeline's own tables that are missing, and its view."""

    def work(self, context: Context) -> None:
        """Create the tables and the view with the owner's rights."""
        from spark_apps.pipeline.tables import create_tables

        create_tables(WarehouseHook("owner").login(), self.definition())


class CreateTopicsOperator(PipelineOperator):
    """Creates a pipeline's topics that are missing."""

    writes = ("topic",)

    def work(self, context: Context) -> list[str]:
        """Create the topics and return their names."""
        from spark_apps.pipeline.topics import create_topics

        created = create_topics(BrokerHook().bootstrap(), self.definition())
        self.log.info("created: %s", ", ".join(created) or "nothing, all topics exist")
        return created
