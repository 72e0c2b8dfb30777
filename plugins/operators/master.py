"""Airflow tasks that load master data, order it by estimated access frequency, check it and publish it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from foundation.errors import QualityError
from foundation.settings import settings
from plugins.hooks.warehouse import WarehouseHook
from plugins.operators.base import FreshetOperator, PipelineOperator

# What is slow to import (pyarrow, numba, Great Expectations) is imported where it is used.

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from airflow.sdk import Context

    from spark_apps.pipeline.definition import Master


class LoadCatalogueOperator(FreshetOperator):
    """Fills the product table with a generated catalogue, unless it has rows."""

    template_fields: Sequence[str] = ("rows",)

    def __init__(self, *, rows: int | str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rows = rows

    def work(self, context: Context) -> int:
        """Load the catalogue and return the number of products."""
        from spark_apps.master.catalogue import load_catalogue

        present = load_catalogue(WarehouseHook("owner").login(), int(self.rows), report=self.log.info)
        self.log.info("`product` has %d rows", present)
        return present


class MasterOperator(PipelineOperator):
    """An operator that works on a pipeline's master table."""

    def master(self) -> Master:
        """Return the section [master] of the pipeline's file."""
        return self.definition().master

    def snapshots(self) -> Path:
        """Return the folder of the pipeline's snapshots."""
        return settings().folders.snapshots(self.definition().name)


class PrepareMasterOperator(MasterOperator):
    """Creates the tables beside the master table, and begins to log its changes."""

    writes = ("master",)

    def work(self, context: Context) -> None:
        """Create what is missing."""
        from spark_apps.master.tables import prepare

        prepare(WarehouseHook("owner").login(), self.master())


class RankMasterOperator(MasterOperator):
    """Builds the next ranked copy of the master table; nobody uses it yet."""

    reads = ("master", "estimate")

    def work(self, context: Context) -> dict[str, int | str]:
        """Build the copy and return the fields of its Ranking."""
        from spark_apps.master.ranking import build_ranking

        ranking = build_ranking(WarehouseHook("owner").login(), self.master())
        self.log.info("built: %s", ranking)
        return asdict(ranking)


class CheckMasterOperator(MasterOperator):
    """Refuses a ranked copy that is not as expected; the version in use stays in use.

    Args:
        ranking: what RankMasterOperator returned.
        least_share: the least share of the published version's rows that a new version must have.
        **kwargs: `pipeline`, and Airflow's own.
    """

    template_fields: Sequence[str] = ("pipeline", "ranking", "least_share")
    writes = ("quality",)

    def __init__(self, *, ranking: Any, least_share: float | str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ranking = ranking
        self.least_share = least_share

    def work(self, context: Context) -> None:
        """Check the copy with Great Expectations; raise QualityError with the expectations that are not met."""
        from quality.master import check_ranking
        from quality.results import record
        from spark_apps.master.ranking import Ranking
        from spark_apps.master.snapshots import current
        from spark_apps.master.tables import Names

        published = current(self.snapshots())
        least = round(float(self.least_share) * published.rows) if published else 1
        checker = WarehouseHook("checker").login()
        outcome = check_ranking(checker, self.master(), Ranking(**self.ranking), least)
        loader, table = WarehouseHook("loader").login(), self.master().table
        record(loader, self.pipeline, table, len(outcome.lines), outcome.failures)
        for line in outcome.lines:
            self.log.info("%s", line)
        if outcome.failures:
            copy = Names(self.master().table).next_by_rank
            kept = f"version {published.version} stays in use" if published else "nothing is published yet"
            raise QualityError(
                f"refused to publish, {kept}: {'; '.join(outcome.failures)}",
                f"Look at `{copy}`, which is there until the next run.",
            )


class PublishMasterOperator(MasterOperator):
    """Publishes the ranked copy that was checked."""

    writes = ("snapshot",)
    template_fields: Sequence[str] = ("pipeline", "ranking")

    def __init__(self, *, ranking: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ranking = ranking

    def work(self, context: Context) -> int:
        """Publish the copy and return the version."""
        from spark_apps.enriching.planning import planner
        from spark_apps.master.publish import publish
        from spark_apps.master.ranking import Ranking

        owner = WarehouseHook("owner").login()
        plan = planner(owner, self.definition(), report=self.log.info)
        snapshot = publish(owner, self.master(), Ranking(**self.ranking), self.snapshots(), plan=plan)
        self.log.info("published version %d with %d rows", snapshot.version, snapshot.rows)
        return snapshot.version
