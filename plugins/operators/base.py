"""What all our operators share: they fail with one line, and permanent errors are not retried."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from plugins.one_line import RETRY_POLICY, one_line
from spark_apps.pipeline.definition import read_pipeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

    from spark_apps.pipeline.definition import Pipeline


class FreshetOperator(BaseOperator):
    """An operator whose errors are one line in the Airflow task's log."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"retry_policy": RETRY_POLICY, **kwargs})

    def execute(self, context: Context) -> Any:  # what the task returns
        """Do the task's work."""
        with one_line():
            return self.work(context)

    @abstractmethod
    def work(self, context: Context) -> Any:  # what the task returns
        """Do the task's work; it can raise any of Freshet's errors."""


class PipelineOperator(FreshetOperator):
    """An operator that works on one pipeline."""

    template_fields: Sequence[str] = ("pipeline",)

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline

    def definition(self) -> Pipeline:
        """Return what the pipeline's file says."""
        return read_pipeline(self.pipeline)
