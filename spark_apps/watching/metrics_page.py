"""The counters in the text format that Prometheus reads, version 0.0.4."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_apps.watching.batch_counters import BatchCounters

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Samples = dict[str, float]  # by the value of the metric's label; "" where it has none

_TOTALS = {
    "batches": "batches that were done",
    "events": "events that were read",
    "enriched": "events that a master row matches",
    "cache_hits": "events matched by a master row in memory",
    "not_cached": "events matched by a master row of a page that was read for it",
    "absent": "events whose key no master row has",
    "without_key": "events whose key is null",
    "pages_read": "pages of master data that were read",
    "shed": "events that were put off when their batch's time was over",
    "taken_back": "events that were shed earlier, and tried again",
}
_OF_THE_NEWEST_BATCH = {
    "batch_seconds": ("seconds", "how long the newest batch took"),
    "latency_mean_seconds": ("latency_mean_seconds", "from Kafka's timestamp to the commit, mean of the newest batch"),
    "latency_most_seconds": ("latency_most_seconds", "the same, the event that took longest"),
    "snapshot_version": ("snapshot_version", "version of the master data that the newest batch was joined with"),
    "worker_bytes": ("worker_bytes", "real memory of the largest Python worker"),
}


def page(counters: BatchCounters) -> str:
    """Write every metric with its help, its type and its values."""
    lines: list[str] = []
    for name, kind, label, about, samples in _metrics(counters):
        lines += [f"# HELP freshet_{name} {about}", f"# TYPE freshet_{name} {kind}"]
        for told, value in sorted(samples.items()):
            more = f',{label}="{_escaped(told)}"' if told else ""
            lines.append(f'freshet_{name}{{pipeline="{counters.pipeline.name}"{more}}} {value}')
    return "\n".join(lines) + "\n"


def _metrics(counters: BatchCounters) -> Iterator[tuple[str, str, str, str, Samples]]:
    """Give name, type, label, help and values of each metric."""
    totals, newest = counters.totals, counters.newest
    for name, about in _TOTALS.items():
        value = counters.batches if name == "batches" else getattr(totals, name)
        yield f"{name}_total", "counter", "", about, {"": value}
    yield "rejected_total", "counter", "reason", "events that cannot be read", dict(totals.rejected)
    yield "task_seconds_total", "counter", "phase", "time of all tasks together", dict(totals.seconds)
    yield "memory_budget_bytes", "gauge", "", "what a worker's join may use", {"": counters.pipeline.memory_mb * 2**20}
    yield "shed_waiting_events", "gauge", "", "events that were shed and wait", {"": counters.shed.events}
    yield "shed_damaged_events", "gauge", "", "those of them whose file cannot be read", {"": counters.shed.damaged}
    yield "shed_oldest_seconds", "gauge", "", "age of the oldest of them", {"": counters.shed.oldest_seconds}
    if counters.lag is not None:
        yield "lag_events", "gauge", "", "events that wait in the topic", {"": counters.lag}
    if newest is not None:
        for name, (column, about) in _OF_THE_NEWEST_BATCH.items():
            if newest[column] is not None:  # a batch without events of its own has no latency
                yield name, "gauge", "", about, {"": newest[column]}
        age = (datetime.now(UTC) - newest["finished_at"]).total_seconds()
        yield "batch_age_seconds", "gauge", "", "since the newest batch was done", {"": age}
        master = age + newest["snapshot_age_seconds"]
        yield "snapshot_age_seconds", "gauge", "", "since that version was published", {"": master}


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
