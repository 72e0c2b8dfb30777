"""A busy stream prints one progress line every ten seconds, an idle stream prints none."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import cast

from spark_apps.monitoring.batch_counters import BatchCounters, BatchFacts, ShedBacklog, TopicBacklog
from spark_apps.monitoring.progress_line import ProgressLine
from spark_apps.monitoring.task_counts import TaskCounts


def test_a_line_says_rate_lag_latency_cache_and_snapshot() -> None:
    """A line covers the time since the line before, and is printed at most every ten seconds."""
    now = [0.0]
    counters = SimpleNamespace(
        totals=TaskCounts(), batches=0, lag=TopicBacklog(0), shed=ShedBacklog(), newest=TaskCounts(), facts=None
    )
    progress = ProgressLine(cast("BatchCounters", counters), clock=lambda: now[0])
    now[0] = 10.0
    assert progress.due() is None  # nothing happened
    counters.batches, counters.facts = 2, BatchFacts(1.0, 7, 60.0)
    counters.newest = TaskCounts(latency_seconds=Counter({"0.538": 8, "1.81": 2}), latency_most=2.0)
    counters.totals = TaskCounts(events=5000, enriched=4000, cache_hits=3000)
    counters.lag, counters.shed = TopicBacklog(1234), ShedBacklog(50)
    latency = "latency p50 0.5 s, p99 1.8 s, at most 2.0 s"
    now[0] = 19.0
    assert progress.due() is None  # too soon
    now[0] = 20.0
    assert progress.due() == (f"500 events/s, lag 1,234, {latency}, cache 75%, 50 shed events wait, snapshot v7")
    now[0] = 30.0
    assert progress.due() == f"0 events/s, lag 1,234, {latency}, 50 shed events wait, snapshot v7"
    counters.lag = TopicBacklog(0)
    now[0] = 40.0
    assert progress.due() is None
