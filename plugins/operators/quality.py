"""Airflow tasks that check data with Great Expectations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk.exceptions import AirflowSkipException

from foundation.connections import connect
from foundation.errors import QualityError
from plugins.hooks.warehouse import WarehouseHook
from plugins.operators.base import PipelineOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

    from foundation.connections import Login


class CheckQualityOperator(PipelineOperator):
    """Checks a table against the suite of the same name in quality/suites/, and records the result.

    It is skipped while the table does not exist. A run that an asset has triggered is skipped while the table is empty.
    """

    template_fields: Sequence[str] = ("pipeline", "suite")
    reads = ("enriched", "snapshot")
    writes = ("quality",)

    def __init__(self, *, suite: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.suite = suite

    def work(self, context: Context) -> int:
        """Return the number of expectations that were checked; raise QualityError with those that are not met."""
        checker = WarehouseHook("checker").login()
        self._skip_without_rows(checker, may_be_empty=context["dag_run"].run_type == "asset_triggered")
        from quality.check import check_suite  # takes seconds to import
        from quality.results import record

        outcome = check_suite(self.suite, checker)
        record(WarehouseHook("loader").login(), self.pipeline, self.suite, len(outcome.lines), outcome.failures)
        for line in outcome.lines:
            self.log.info("%s", line)
        if outcome.failures:
            raise QualityError(
                f"{self.suite}: {len(outcome.failures)} expectations not met: {'; '.join(outcome.failures)}",
                f"Look at the rows that this names, or correct quality/suites/{self.suite}.json.",
            )
        return len(outcome.lines)

    def _skip_without_rows(self, checker: Login, *, may_be_empty: bool) -> None:
        with connect(checker) as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = %s",
                (self.suite,),
            )
            if not cursor.fetchall():
                self._skip(f"nothing to check: table {self.suite} does not exist yet. Dag prepare_warehouse creates it")
            cursor.execute(f"SELECT 1 FROM {self.suite} LIMIT 1")  # noqa: S608  # the table exists by this name
            if may_be_empty and not cursor.fetchall():
                self._skip(f"nothing to check: table {self.suite} has no row yet")

    def _skip(self, why: str) -> NoReturn:
        self.log.info("%s", why)
        raise AirflowSkipException(why)
