"""What a task counts while it works. The counts are for monitoring; accounting is done on the tables alone."""

from __future__ import annotations

import operator
import time
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Self, TypeVar

import psutil

from spark_apps.monitoring import latency
from spark_apps.monitoring.counters import counter, derived

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Collection, Iterable, Iterator

    from semistream import SemiStreamJoin

T = TypeVar("T")
_LARGEST = ("latency_most", "worker_bytes")  # the sum of several tasks has the largest of these, and adds up the others


@dataclass
class TaskCounts:
    """The counts of one task, or their sum over a batch's tasks or all batches since the application's start."""

    events: int = counter("events", "events that were read")
    enriched: int = counter("events", "events that a master row matches")
    unmatched: int = counter("events", "events that no master row matches")
    without_key: int = counter("events", "events whose key is null")
    cache_hits: int = counter("events", "events matched by a master row in memory")
    pages_read: int = counter("pages", "pages of master data that were read")
    shed: int = counter("events", "events put off to disk because their batch's time was over")
    replayed: int = counter("events", "shed events that were read back from disk and tried again")
    rejected: Counter[str] = counter("events", "events that cannot be read", label="reason")
    task_seconds: Counter[str] = counter("seconds", "time of all tasks together", label="phase")
    worker_bytes: int = counter("bytes", "resident memory (RSS) of the largest Python worker", rolls=("newest",))
    latency_seconds: Counter[str] = counter(
        "events", "events by their latency, from Kafka's timestamp to the commit", label="le"
    )
    latency_sum: float = 0.0  # seconds, of all events together
    latency_most: float = 0.0

    @derived("events", "events matched by a master row whose page was read for them")
    def not_cached(self) -> int:
        """Count the events with a master row that the cache did not have: they waited for its page."""
        return self.enriched - self.cache_hits

    @derived("events", "events whose key no master row has")
    def absent(self) -> int:
        """Count the events whose key no master row has."""
        return self.unmatched - self.without_key

    @derived("seconds", "mean latency of the newest batch, from Kafka's timestamp to the commit", rolls=())
    def latency_mean_seconds(self) -> float | None:
        """Return the mean latency; a batch without events has none."""
        return self.latency_sum / self.events if self.events else None

    @derived("seconds", "median latency of the newest batch", rolls=())
    def latency_p50_seconds(self) -> float | None:
        """Return the latency that half of the events do not exceed."""
        return latency.percentiles(self.latency_seconds, (0.5,), self.latency_most)[0]

    @derived("seconds", "latency that 99 of 100 events of the newest batch do not exceed", rolls=())
    def latency_p99_seconds(self) -> float | None:
        """Return the latency that 99 of 100 events do not exceed."""
        return latency.percentiles(self.latency_seconds, (0.99,), self.latency_most)[0]

    @derived("seconds", "longest latency of the newest batch, from Kafka's timestamp to the commit", rolls=("most",))
    def latency_most_seconds(self) -> float | None:
        """Return the longest latency; a batch without events has none."""
        return self.latency_most if self.events else None

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Add the time that the block takes to a phase."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.task_seconds[phase] += time.perf_counter() - began  # type: ignore[assignment]  # a Counter of seconds

    def awaited(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items, and add the time that it waits for each to the phase "source"."""
        iterator, end = iter(items), object()
        while True:
            with self.timed("source"):
                item = next(iterator, end)
            if item is end:
                return
            yield item  # type: ignore[misc]

    @contextmanager
    def of_join(self, join: SemiStreamJoin) -> Iterator[None]:
        """Add the cache hits and the pages read that the join counts during the block."""
        hits, pages = join.front_stage.hits, join.relation.counters.pages_read
        yield
        self.cache_hits += join.front_stage.hits - hits
        self.pages_read += join.relation.counters.pages_read - pages

    def reject(self, reasons: Iterable[str], known_fields: Collection[str]) -> None:
        """Count unreadable events."""
        self.rejected.update(kind_of(reason, known_fields) for reason in reasons)

    def measure_worker(self) -> None:
        """Set `worker_bytes` to the resident memory of this process."""
        self.worker_bytes = psutil.Process().memory_info().rss

    def __iadd__(self, other: TaskCounts) -> Self:
        for each in fields(self):
            together = max if each.name in _LARGEST else operator.add
            setattr(self, each.name, together(getattr(self, each.name), getattr(other, each.name)))
        return self


def kind_of(reason: str, known_fields: Collection[str]) -> str:
    """Return the kind of a reason, of which there are few: the reason without the event's value."""
    about = reason.partition(":")[0]
    return reason.partition(", got ")[0] if about in known_fields else about
