"""Explain a plan to a person: each join's best rate, its memory by part, its waits, and the choice with its reason."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from semistream.joins import BY_NAME
from semistream.memory_split import MemorySplit
from semistream.planning.predict import Prediction
from semistream.planning.times import processing_percentile, waiting_seconds
from semistream.planning.workload import Workload

__all__ = ["as_json", "as_text", "reason"]

_SECONDS_A_MINUTE = 60
_HARDLY_A_PAGE = 1e-6  # for 1,000 tuples


def as_text(found: Mapping[str, Prediction], workload: Workload, memory: int, *, arrivals: float | None = None) -> str:
    """Return a table of the joins, the best first, and the choice; with `arrivals` a second, also the waiting time."""
    ranked = _ranked(found)
    share = memory / (workload.rows * workload.row_bytes)
    arriving = "" if arrivals is None else f" Arrivals: {arrivals:,.0f} tuples/s."
    head = (
        f"R: {workload.rows:,} rows of {workload.row_bytes} bytes, order: {workload.order}. Stream: Zipf's exponent "
        f"{workload.exponent:g}. Memory: {memory:,} bytes, {share:.1%} of R.{arriving}\n\n"
        f"{'':24} {'':>12} {'':>10} {'':>10} {'':>10} {'read':^35} {'processing time':^43}\n"
        f"{'join':24} {'tuples/s':>12} {'rows/page':>10} {'pages/read':>10} {'in memory':>10} "
        f"{'pages/1,000':>12} {'rows/1,000':>11} {'bytes':>10} {'mean':>10} {'p50':>10} {'p99':>10} {'longest':>10}  "
        f"{'' if arrivals is None else 'waiting time  '}memory"
    )
    return "\n".join([head, *(_line(each, memory, arrivals) for each in ranked), "", reason(ranked)])


def _line(found: Prediction, memory: int, arrivals: float | None) -> str:
    """Return the line of a join; its plan may use less than the memory."""
    part = f"{found.plan.memory:,} bytes: " if found.plan.memory < memory else ""
    half, most = (processing_percentile(found, part) for part in (0.5, 0.99))
    times = " ".join(f"{_time(t):>10}" for t in (found.processing_seconds, half, most, found.longest_seconds))
    waiting = "" if arrivals is None else f"{_time(waiting_seconds(found, arrivals)):>12}  "
    return (
        f"{BY_NAME[found.plan.join].paper_name:24} {found.rate:12,.0f} {found.plan.page_rows:10,} "
        f"{found.plan.partition_pages:10,} {found.in_memory:10.1%} {found.pages_per_1000:12.3f} "
        f"{found.rows_per_1000:11.1f} {found.bytes_per_tuple:10,.0f} {times}  {waiting}{part}{_parts(found.split)}"
    )


def _ranked(found: Mapping[str, Prediction]) -> list[Prediction]:
    """Return the best join first."""
    return sorted(found.values(), key=lambda each: -each.rate)


def reason(ranked: list[Prediction]) -> str:
    """Say which join is chosen, and why not the next one."""
    best = ranked[0]
    name = BY_NAME[best.plan.join].paper_name
    partition = "" if best.plan.partition_pages == 1 else f"partitions of {best.plan.partition_pages:,} "
    said = f"{name}, {partition}pages of {best.plan.page_rows:,} rows, "
    said += f"front_stage={best.plan.shares.front_stage:.2f}: "
    serves = f"a {'partition' if partition else 'page'} serves {best.tuples:,.0f} tuples"
    if best.rows_per_1000:
        said += (
            f"{best.in_memory:.0%} of the stream meets its row in memory; the rows of the rest are read one by one, "
            f"because few tuples wait for each page (single_rows_below={best.plan.single_rows_below:.0f})."
        )
    elif best.pages_per_1000 < _HARDLY_A_PAGE:
        said += "the whole stream meets its row in memory, and no page is read."
    elif best.in_memory:
        said += f"{best.in_memory:.0%} of the stream meets its row in memory, and {serves}."
    else:
        said += f"{serves}."
    if len(ranked) > 1:
        second = ranked[1]
        said += (
            f" It is {best.rate / second.rate:.2f} times as fast as {BY_NAME[second.plan.join].paper_name}, the next."
        )
    return said


def as_json(
    found: Mapping[str, Prediction], workload: Workload, memory: int, *, arrivals: float | None = None
) -> dict[str, Any]:
    """Return everything as plain values; a waiting time without end is None."""
    ranked = _ranked(found)
    return {
        "rows": workload.rows,
        "row_bytes": workload.row_bytes,
        "order": workload.order,
        "exponent": workload.exponent,
        "memory": memory,
        "choice": ranked[0].plan.join,
        "reason": reason(ranked),
        "joins": {each.plan.join: asdict(each) | _times(each, arrivals) for each in ranked},
    }


def _times(found: Prediction, arrivals: float | None) -> dict[str, float | None]:
    """Return the times that follow from a prediction."""
    times: dict[str, float | None] = {
        f"processing_p{percent}_seconds": processing_percentile(found, percent / 100) for percent in (50, 99)
    }
    if arrivals is not None:
        waiting = waiting_seconds(found, arrivals)
        times["waiting_seconds"] = waiting if math.isfinite(waiting) else None
    return times


def _parts(split: MemorySplit) -> str:
    parts = {
        "waiting": split.waiting_slots,
        "cached rows": split.cache_slots,
        "kept rows": split.kept_rows,
        "read at once": split.chunk_rows,
    }
    return ", ".join(f"{name} {count:,}" for name, count in parts.items() if count)


def _time(seconds: float) -> str:
    if math.isinf(seconds):
        return "too slow"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < _SECONDS_A_MINUTE else f"{seconds / _SECONDS_A_MINUTE:.1f} min"
