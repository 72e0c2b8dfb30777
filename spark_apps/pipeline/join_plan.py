"""How a pipeline's workers join with one snapshot. The planner decides it when the snapshot is published."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class JoinPlan:
    """The parameters of a join that follow from the master data and the skew. The defaults are the papers'.

    Attributes:
        join: its name in a pipeline's file, never "auto".
        front_stage: the share of its memory for the rows or pages that it keeps.
        partition_pages: how many pages it reads at once.
        single_rows_below: it reads the rows of a page that serves fewer events one by one.
        exponent: the exponent of Zipf's law that it is planned for.
        device: what the snapshot is read from, a name in `semistream.planning.machine.DEVICES`.
        reason: why; for people.
    """

    join: str = "chybridjoin"
    front_stage: float = 0.15
    partition_pages: int = 1
    single_rows_below: float = 0.0
    exponent: float = 1.0
    device: str = "page-cache"
    reason: str = "not planned yet; the pipeline's Dag refresh plans with each snapshot"
