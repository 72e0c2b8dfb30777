"""What a task reports to the driver when it is done, and how Spark adds up the reports of a batch's tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from pyspark.accumulators import AccumulatorParam

from spark_apps.monitoring.task_counts import TaskCounts

if TYPE_CHECKING:
    from pyspark import Accumulator, SparkContext


@dataclass
class TaskReport:
    """The report of one task, or the sum of the reports of a batch's tasks.

    Attributes:
        counts: what it counted, for monitoring.
        replayed_segments: shed segments whose events have landed; the driver removes them when Spark's job is done.
        set_aside: a log line for each segment that could not be read and was set aside.
    """

    counts: TaskCounts = field(default_factory=TaskCounts)
    replayed_segments: list[int] = field(default_factory=list)
    set_aside: list[str] = field(default_factory=list)

    def __iadd__(self, other: TaskReport) -> Self:
        self.counts += other.counts
        self.replayed_segments += other.replayed_segments
        self.set_aside += other.set_aside
        return self


class AddReports(AccumulatorParam[TaskReport]):
    """Lets Spark add up the reports of tasks. Failed attempts are not counted."""

    def zero(self, value: TaskReport) -> TaskReport:  # noqa: ARG002  # Spark's interface
        """Return an empty report, from which Spark starts to add."""
        return TaskReport()

    def addInPlace(self, value1: TaskReport, value2: TaskReport) -> TaskReport:  # noqa: N802  # Spark's interface
        """Add the second report to the first and return the first."""
        value1 += value2
        return value1


def collector(context: SparkContext) -> Accumulator[TaskReport]:
    """Return the accumulator that tasks send their reports to."""
    return context.accumulator(TaskReport(), AddReports())
