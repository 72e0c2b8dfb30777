"""Tasks that prepare the warehouse and publish what the stream reads from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from plugins.hooks.broker import BrokerHook
from plugins.hooks.warehouse import WarehouseHook
from services.migrations import migrate
from services.settings import settings
from spark_apps.pipeline import load_pipeline

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
        from spark_apps.tables import create_tables  # pyarrow, only where it is used

        create_tables(WarehouseHook("owner").login(), load_pipeline(self.pipeline))


class CreateTopicsOperator(BaseOperator):
    """Makes a pipeline's topics that are missing."""

    template_fields: Sequence[str] = ("pipeline",)

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline

    def execute(self, context: Context) -> list[str]:
        """Create and return the names."""
        from spark_apps.topics import create_topics  # the Kafka client, only where it is used

        created = create_topics(BrokerHook().bootstrap(), load_pipeline(self.pipeline))
        self.log.info("created: %s", ", ".join(created) or "nothing, all topics are there")
        return created


class LoadCatalogueOperator(BaseOperator):
    """Fills the product table with a believable catalogue, unless it has rows."""

    template_fields: Sequence[str] = ("rows",)

    def __init__(self, *, rows: int | str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rows = rows

    def execute(self, context: Context) -> int:
        """Load and return the number of products."""
        from spark_apps.master.catalogue import load_catalogue  # pyarrow, only where it is used

        present = load_catalogue(WarehouseHook("owner").login(), int(self.rows))
        self.log.info("`product` has %d rows", present)
        return present


class PublishSnapshotOperator(BaseOperator):
    """Publishes a pipeline's master data in the order of its estimated access frequency."""

    template_fields: Sequence[str] = ("pipeline",)

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline

    def execute(self, context: Context) -> int:
        """Publish and return the version."""
        from spark_apps.master.snapshot import publish  # pyarrow, only where it is used

        folder = settings().state / "snapshots" / load_pipeline(self.pipeline).name
        version, rows = publish(WarehouseHook("reader").login(), folder)
        self.log.info("published version %d with %d rows", version, rows)
        return version
