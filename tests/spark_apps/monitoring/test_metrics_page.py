"""The metrics page is in Prometheus' text format."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import cast

from spark_apps.monitoring.batch_counters import BatchCounters, BatchFacts, MasterBacklog, ShedBacklog, TopicBacklog
from spark_apps.monitoring.latency import LABELS
from spark_apps.monitoring.metrics_page import page
from spark_apps.monitoring.task_counts import TaskCounts


def test_latency_is_a_histogram_of_all_batches_and_percentiles_of_the_newest() -> None:
    """The page has cumulative buckets, sum and count of all batches' latencies, and p50 and p99 of the newest batch."""
    totals = TaskCounts(events=10, latency_seconds=Counter({"0.538": 1, "1.81": 9}), latency_sum=15.5, latency_most=1.7)
    counters = SimpleNamespace(
        pipeline=SimpleNamespace(name="sales", memory_mb=1), totals=totals, batches=2, newest=totals,
        finished_at=datetime.now(UTC), facts=BatchFacts(1.0, 7, 60.0), lag=TopicBacklog(0), shed=ShedBacklog(),
            master=MasterBacklog(3),
    )  # fmt: skip
    lines = page(cast("BatchCounters", counters)).splitlines()
    assert "# TYPE freshet_latency_seconds histogram" in lines
    buckets = [line for line in lines if line.startswith("freshet_latency_seconds_bucket")]
    assert [line.split('le="')[1].split('"')[0] for line in buckets] == list(LABELS)
    for label, events in (("0.453", 0), ("0.538", 1), ("1.52", 1), ("1.81", 10), ("+Inf", 10)):
        assert f'freshet_latency_seconds_bucket{{pipeline="sales",le="{label}"}} {events}' in buckets
    assert 'freshet_latency_seconds_sum{pipeline="sales"} 15.5' in lines
    assert 'freshet_latency_seconds_count{pipeline="sales"} 10' in lines
    gauges = {
        line.partition("{")[0]: float(line.rpartition(" ")[2])
        for line in lines
        if "_latency_p" in line and "#" not in line
    }
    assert 1.52 < gauges["freshet_latency_p50_seconds"] < gauges["freshet_latency_p99_seconds"] < 1.7
