"""Plan a pipeline's join: R from a snapshot, the skew from the stored estimate, the memory from the pipeline's file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from semistream.planning.explain import as_text, reason
from semistream.planning.fit import fit_exponent
from semistream.planning.machine import on_this_processor
from semistream.planning.tuner import best_of_each

from spark_apps.enriching.worker_join import AUTO, SHEDS
from spark_apps.enriching.workload import workload_of
from spark_apps.master.frequency import WEIGHT, read_estimate
from spark_apps.pipeline.join_plan import JoinPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from semistream import PageFile
    from semistream.planning import Prediction, Workload

    from foundation.connections import Login
    from spark_apps.pipeline.definition import Pipeline

NOT_COUNTED = 1.0  # the exponent while there is no estimate: a few products make most sales
MEGABYTE = 1024 * 1024
NEARLY = 0.9  # of the fastest join's rate; the models are within a tenth
IN_PAGE_CACHE = 0.5  # of the host's memory: a snapshot that is larger is read from its disk


@dataclass(frozen=True)
class Plans:
    """The best plan of each join for a pipeline and a snapshot.

    Attributes:
        found: the plans by the joins' names; joins that the memory is too small for are left out.
        workload: what is joined.
        memory: of the pipeline's file, in bytes.
        is_counted: whether the skew is that of the estimate.
        device: what the snapshot is on.
    """

    found: Mapping[str, Prediction]
    workload: Workload
    memory: int
    is_counted: bool
    device: str

    def choice(self, pipeline: Pipeline) -> JoinPlan:
        """Return the plan of the join that the file names or, for "auto", of the fastest one.

        With `batch_seconds` it is CHYBRIDJOIN, the only join that can shed. A join without a plan, or without enough
        memory, gets the defaults; in the second case a start says how much it needs.
        """
        name: str = pipeline.join
        if pipeline.batch_seconds is not None:
            name = SHEDS
        elif name == AUTO:
            name = self._fastest()
        if name not in self.found:
            return JoinPlan(name, reason="there is no plan for this join, or it needs more memory")
        plan = self.found[name].plan
        return JoinPlan(
            name, plan.shares.front_stage, plan.partition_pages, plan.single_rows_below,
            self.workload.exponent, self.device, self._reason(name, pipeline),
        )  # fmt: skip

    def _reason(self, name: str, pipeline: Pipeline) -> str:
        """Return why this join, and why not the fastest one."""
        fastest = max(self.found, key=lambda each: self.found[each].rate)
        why = ""
        if pipeline.join not in {AUTO, SHEDS}:
            why = " The pipeline's file names it."
        elif fastest != name and pipeline.batch_seconds is not None:
            why = " It is the one that can shed, which batch_seconds needs."
        elif fastest != name:
            why = f" {fastest} is hardly faster, and its rows in memory follow the stream less or not at all."
        return reason([self.found[name]]) + why

    def _fastest(self) -> str:
        """Return the fastest join, but CHYBRIDJOIN if it is nearly as fast: its cache follows a skew that moves."""
        rates = {name: found.rate for name, found in self.found.items()}
        if rates.get(SHEDS, 0.0) >= NEARLY * max(rates.values(), default=0.0):
            return SHEDS
        return max(rates, key=rates.__getitem__)

    def as_text(self) -> str:
        """Return all plans as a table, and the exponent's source."""
        if not self.found:
            return f"{self.memory:,} bytes are not enough for any join of {self.workload.rows:,} master rows."
        source = "counted by the estimate" if self.is_counted else "not counted yet, so taken for 1"
        return f"{as_text(self.found, self.workload, self.memory)}\nThe exponent is {source}. Device: {self.device}."


def planner(
    reader: Login, pipeline: Pipeline, report: Callable[[str], object] = lambda _: None
) -> Callable[[PageFile], JoinPlan]:
    """Return the function that plans a pipeline's join with a snapshot; it reports the plans of all joins, and why."""

    def plan(snapshot: PageFile) -> JoinPlan:
        if not snapshot.row_count:
            return JoinPlan(reason="the master table is empty")
        found = plans(reader, pipeline, snapshot, device_of(snapshot.path))
        choice = found.choice(pipeline)
        for line in (*found.as_text().splitlines(), f"{pipeline.name} joins by {choice.join}: {choice.reason}"):
            report(line)
        return choice

    return plan


def plans(reader: Login, pipeline: Pipeline, relation: PageFile, device: str) -> Plans:
    """Plan each join.

    Args:
        reader: an account that reads the estimate.
        pipeline: its definition.
        relation: the snapshot.
        device: what the snapshot is on: a name in `semistream.planning.machine.DEVICES`.
    """
    estimate = read_estimate(reader, pipeline.master)
    weights = np.sort(estimate.weights[WEIGHT].to_numpy())[::-1]
    is_counted = len(weights) > 0 and estimate.total > 0
    exponent = fit_exponent(weights / estimate.total, relation.row_count) if is_counted else NOT_COUNTED
    workload = workload_of(pipeline, relation, exponent)
    memory = pipeline.memory_mb * MEGABYTE
    found = best_of_each(workload, memory, on_this_processor(device), page_rows=relation.page_rows)
    return Plans(found, workload, memory, is_counted, device)


def device_of(snapshot: Path) -> str:
    """Return what a snapshot is read from: the host's page cache if that has room for it, else its disk."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return "page-cache" if snapshot.stat().st_size < IN_PAGE_CACHE * memory else "ssd"
