"""What all our operators share: they fail with one line, permanent errors are not retried, and assets connect them."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from plugins.assets import asset
from plugins.one_line import RETRY_POLICY, one_line
from spark_apps.pipeline.definition import read_pipeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

    from plugins.assets import Kind
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
    """An operator that works on one pipeline, and says which of its assets it reads and writes."""

    template_fields: Sequence[str] = ("pipeline",)
    reads: Sequence[Kind] = ()
    writes: Sequence[Kind] = ()

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        inlets, outlets = ([asset(kind, pipeline) for kind in kinds] for kinds in (self.reads, self.writes))
        super().__init__(**{"inlets": inlets, "outlets": outlets, **kwargs})
        self.pipeline = pipeline

    def definition(self) -> Pipeline:
        """Return what the pipeline's file says."""
        return read_pipeline(self.pipeline)
