"""Airflow tasks that check data with Great Expectations."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from airflow.sdk.exceptions import AirflowSkipException

from foundation.connections import connect
from foundation.errors import QualityError
from plugins.hooks.warehouse import WarehouseHook
from plugins.operators.base import PipelineOperator
from spark_apps.pipeline.dags import dag_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from foundation.connections import Login


class CheckQualityOperator(PipelineOperator):
    """Checks a pipeline's enriched rows, and records the result.

    It is skipped while the table does not exist. A run that an asset has triggered is skipped while the table is empty.
    """

    reads = ("enriched", "snapshot")
    writes = ("quality",)

    def work(self, context: Context) -> int:
        """Return the number of expectations that were checked; raise QualityError with those that are not met."""
        checker, table = WarehouseHook("checker").login(), f"{self.pipeline}_enriched"
        self._skip_without_rows(checker, table, may_be_empty=context["dag_run"].run_type == "asset_triggered")
        from quality.enriched import check_enriched  # takes seconds to import
        from quality.results import record

        outcome = check_enriched(checker, table)
        record(WarehouseHook("loader").login(), self.pipeline, table, len(outcome.lines), outcome.failures)
        for line in outcome.lines:
            self.log.info("%s", line)
        if outcome.failures:
            raise QualityError(
                f"{table}: {len(outcome.failures)} expectations not met: {'; '.join(outcome.failures)}",
                f"Look at the rows that this names, or correct quality/suites/{table}.json.",
            )
        return len(outcome.lines)

    def _skip_without_rows(self, checker: Login, table: str, *, may_be_empty: bool) -> None:
        with connect(checker) as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = %s",
                (table,),
            )
            if not cursor.fetchall():
                prepare = dag_of("prepare", self.pipeline)
                self._skip(f"nothing to check: table {table} does not exist yet. Dag {prepare} creates it")
            cursor.execute(f"SELECT 1 FROM {table} LIMIT 1")  # noqa: S608  # the table exists by this name
            if may_be_empty and not cursor.fetchall():
                self._skip(f"nothing to check: table {table} has no row yet")

    def _skip(self, why: str) -> NoReturn:
        self.log.info("%s", why)
        raise AirflowSkipException(why)
