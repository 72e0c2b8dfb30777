"""One line of the log every ten seconds: rate, lag, latency, cache and snapshot."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_apps.monitoring.batch_counters import BatchCounters

EVERY_SECONDS = 10.0


class ProgressLine:
    """Writes what the application did since the last line; nothing while no event comes and none waits.

    Args:
        counters: the application's.
        clock: the time in seconds.
    """

    def __init__(self, counters: BatchCounters, clock: Callable[[], float] = time.monotonic) -> None:
        self._counters = counters
        self._clock = clock
        self._written_at = clock()
        self._totals = self._seen()

    def due(self) -> str | None:
        """Return the line if ten seconds have passed and there is something to say."""
        now, seen = self._clock(), self._seen()
        seconds = now - self._written_at
        if seconds < EVERY_SECONDS:
            return None
        events, hits, matched, batches = (new - old for new, old in zip(seen, self._totals, strict=True))
        self._written_at, self._totals = now, seen
        lag, newest, facts = self._counters.lag.lag_events, self._counters.newest, self._counters.facts
        if not batches and not lag:
            return None
        said = [f"{events / seconds:,.0f} events/s", "lag not known" if lag is None else f"lag {lag:,}"]
        if newest.latency_p50_seconds is not None:
            p50, p99, most = newest.latency_p50_seconds, newest.latency_p99_seconds, newest.latency_most
            said.append(f"latency p50 {p50:.1f} s, p99 {p99:.1f} s, at most {most:.1f} s")
        if matched:
            said.append(f"cache {hits / matched:.0%}")
        if self._counters.shed.shed_waiting_events:
            said.append(f"{self._counters.shed.shed_waiting_events:,} shed events wait")
        if facts:
            said.append(f"snapshot v{facts.snapshot_version}")
        return ", ".join(said)

    def _seen(self) -> tuple[int, int, int, int]:
        totals = self._counters.totals
        return totals.events, totals.cache_hits, totals.enriched, self._counters.batches
