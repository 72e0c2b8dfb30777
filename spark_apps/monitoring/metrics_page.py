"""The counters in the text format that Prometheus reads, version 0.0.4."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from spark_apps.monitoring.batch_counters import ApplicationFacts
from spark_apps.monitoring.counters import Declared, declared
from spark_apps.monitoring.latency import cumulative

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_apps.monitoring.batch_counters import BatchCounters

Sample = tuple[str, str, float]  # the end of its name, its label's value, its value
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def page(counters: BatchCounters) -> str:
    """Return the metrics page: every metric with its help, its type and its values."""
    lines: list[str] = []
    for metric, value in _metrics(counters):
        lines += [f"# HELP {metric.metric} {metric.help}", f"# TYPE {metric.metric} {metric.kind}"]
        if metric.kind == "histogram":
            samples: list[Sample] = [("_bucket", label, events) for label, events in cumulative(value).items()]
            samples += [("_sum", "", counters.totals.latency_sum), ("_count", "", value.total())]
        elif metric.label:
            samples = [("", label, one) for label, one in sorted(value.items())]
        else:
            samples = [("", "", value)]
        for suffix, label, one in samples:
            more = f',{metric.label}="{_escaped(label)}"' if label else ""
            lines.append(f'{metric.metric}{suffix}{{pipeline="{counters.pipeline.name}"{more}}} {one}')
    return "\n".join(lines) + "\n"


def _metrics(counters: BatchCounters) -> Iterator[tuple[Declared, Any]]:
    """Yield each metric that has a value now, with the value."""
    age = (datetime.now(UTC) - counters.finished_at).total_seconds()
    budget = counters.pipeline.memory_mb * 2**20
    # An idle stream has no batches, and that is no fault.
    standing_still = age if counters.lag.lag_events else 0.0
    since_batch = standing_still if counters.facts else None
    yield from _having_values(ApplicationFacts(counters.batches, budget, since_batch), totals=True, others=True)
    yield from _having_values(counters.totals, totals=True, others=False)
    yield from _having_values(counters.lag, totals=True, others=True)
    yield from _having_values(counters.master, totals=True, others=True)
    yield from _having_values(counters.shed, totals=True, others=True)
    if counters.facts is not None:
        facts = replace(counters.facts, snapshot_age_seconds=counters.facts.snapshot_age_seconds + age)
        yield from _having_values(counters.newest, totals=False, others=True)
        yield from _having_values(facts, totals=True, others=True)


def _having_values(counts: object, *, totals: bool, others: bool) -> Iterator[tuple[Declared, Any]]:
    for each in declared(type(counts)):
        value = getattr(counts, each.name)
        if value is not None and (totals if each.total else others):
            yield each, value


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
