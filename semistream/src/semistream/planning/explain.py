"""Explain a plan to a person: each join's best rate, its memory by part, its waits, and the choice with its reason."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from semistream.joins import BY_NAME
from semistream.memory_split import MemorySplit
from semistream.planning.predict import Prediction
from semistream.planning.workload import Workload

__all__ = ["as_json", "as_text", "reason"]

_SECONDS_A_MINUTE = 60
_HARDLY_A_PAGE = 1e-6  # for 1,000 tuples


def as_text(found: Mapping[str, Prediction], workload: Workload, memory: int) -> str:
    """Return a table of the joins, the best first, and the choice."""
    ranked = sorted(found.values(), key=lambda each: -each.rate)
    share = memory / (workload.rows * workload.row_bytes)
    head = (
        f"R: {workload.rows:,} rows of {workload.row_bytes} bytes, order: {workload.order}. Stream: Zipf's exponent "
        f"{workload.exponent:g}. Memory: {memory:,} bytes, {share:.1%} of R.\n\n"
        f"{'join':24} {'tuples/s':>12} {'rows/page':>10} {'pages/read':>10} {'in memory':>10} "
        f"{'pages/1,000':>12} {'mean wait':>10} {'longest':>10}  memory"
    )
    lines = [
        f"{BY_NAME[each.plan.join].paper_name:24} {each.rate:12,.0f} {each.plan.page_rows:10,} "
        f"{each.plan.partition_pages:10,} {each.in_memory:10.1%} {each.pages_per_1000:12.3f} "
        f"{_time(each.waiting_seconds):>10} {_time(each.longest_seconds):>10}  {_parts(each.split)}"
        for each in ranked
    ]
    return "\n".join([head, *lines, "", reason(ranked)])


def reason(ranked: list[Prediction]) -> str:
    """Say which join is chosen, and why not the next one."""
    best = ranked[0]
    name = BY_NAME[best.plan.join].paper_name
    partition = "" if best.plan.partition_pages == 1 else f"partitions of {best.plan.partition_pages:,} "
    said = f"{name}, {partition}pages of {best.plan.page_rows:,} rows, "
    said += f"front_stage={best.plan.shares.front_stage:.2f}: "
    serves = f"a {'partition' if partition else 'page'} serves {best.tuples:,.0f} tuples"
    if best.pages_per_1000 < _HARDLY_A_PAGE:
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


def as_json(found: Mapping[str, Prediction], workload: Workload, memory: int) -> dict[str, Any]:
    """Return everything as plain values."""
    ranked = sorted(found.values(), key=lambda each: -each.rate)
    return {
        "rows": workload.rows,
        "row_bytes": workload.row_bytes,
        "order": workload.order,
        "exponent": workload.exponent,
        "memory": memory,
        "choice": ranked[0].plan.join,
        "reason": reason(ranked),
        "joins": {each.plan.join: asdict(each) for each in ranked},
    }


def _parts(split: MemorySplit) -> str:
    parts = {
        "waiting": split.waiting_slots,
        "cached rows": split.cache_slots,
        "kept rows": split.kept_rows,
        "read at once": split.chunk_rows,
    }
    return ", ".join(f"{name} {count:,}" for name, count in parts.items() if count)


def _time(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < _SECONDS_A_MINUTE else f"{seconds / _SECONDS_A_MINUTE:.1f} min"
