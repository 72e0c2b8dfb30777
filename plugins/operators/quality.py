"""Airflow tasks that check data with Great Expectations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from foundation.errors import QualityError
from plugins.hooks.warehouse import WarehouseHook
from plugins.operators.base import FreshetOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context


class CheckQualityOperator(FreshetOperator):
    """Checks a table against the suite of the same name in quality/suites/."""

    template_fields: Sequence[str] = ("suite",)

    def __init__(self, *, suite: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.suite = suite

    def work(self, context: Context) -> int:
        """Return the number of expectations that were checked; raise QualityError with those that are not met."""
        from quality.check import check_suite  # takes seconds to import

        outcome = check_suite(self.suite, WarehouseHook("checker").login())
        for line in outcome.lines:
            self.log.info("%s", line)
        if outcome.failures:
            raise QualityError(
                f"{self.suite}: {len(outcome.failures)} expectations not met: {'; '.join(outcome.failures)}",
                f"Look at the rows that this names, or correct quality/suites/{self.suite}.json.",
            )
        return len(outcome.lines)
