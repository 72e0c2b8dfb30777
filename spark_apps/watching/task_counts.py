"""What a task counts while it works, and how the counts of a batch's tasks come together on the driver.

They are for watching. Accounting is done on the tables alone, which are exact whatever is killed.
"""

from __future__ import annotations

import operator
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self, TypeVar

import psutil
import pyarrow as pa
from pyarrow import compute
from pyspark.accumulators import AccumulatorParam

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from semistream.joins.semi_stream_join import SemiStreamJoin

T = TypeVar("T")
PHASES = ("source", "read", "join", "load", "messages")
_MILLISECONDS = pa.timestamp("ms", "UTC")


@dataclass
class TaskCounts:
    """What one task did, or all tasks of a batch together.

    Attributes:
        events: how many were read.
        enriched: how many a master row matches.
        unmatched: how many nothing matches, those without a key included.
        without_key: how many have a null for a key.
        cache_hits: how many the front stage matched.
        pages_read: pages of the master data.
        shed: put off when time was over.
        taken_back: shed earlier, and tried again.
        taken_segments: the numbers of the segments that those were in.
        set_aside: a line for each segment that could not be read.
        rejected: unreadable events by the kind of reason.
        seconds: by phase, of all tasks together.
        latency_total: seconds from Kafka's timestamp to the commit, of all events together.
        latency_most: the same of the event that took longest.
        worker_bytes: real memory of the largest worker.
    """

    events: int = 0
    enriched: int = 0
    unmatched: int = 0
    without_key: int = 0
    cache_hits: int = 0
    pages_read: int = 0
    shed: int = 0
    taken_back: int = 0
    taken_segments: list[int] = field(default_factory=list)
    set_aside: list[str] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    latency_total: float = 0.0
    latency_most: float = 0.0
    worker_bytes: int = 0

    @property
    def not_cached(self) -> int:
        """Count the events with a master row that the cache did not have: they waited for its page."""
        return self.enriched - self.cache_hits

    @property
    def absent(self) -> int:
        """Count the events whose key no master row has."""
        return self.unmatched - self.without_key

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Add the time that the block takes to a phase."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[phase] += time.perf_counter() - began  # type: ignore[assignment]  # a Counter of seconds

    def awaited(self, items: Iterable[T]) -> Iterator[T]:
        """Give the items on, and add the time that each is waited for to the phase "source"."""
        iterator, end = iter(items), object()
        while True:
            with self.timed("source"):
                item = next(iterator, end)
            if item is end:
                return
            yield item  # type: ignore[misc]

    @contextmanager
    def of_join(self, join: SemiStreamJoin) -> Iterator[None]:
        """Count what the join does in the block, by its own counters."""
        hits, pages = join.front_stage.hits, join.relation.counters.pages_read
        yield
        self.cache_hits += join.front_stage.hits - hits
        self.pages_read += join.relation.counters.pages_read - pages

    def reject(self, reasons: Iterable[str], known_fields: Collection[str]) -> None:
        """Count unreadable events."""
        self.rejected.update(kind_of(reason, known_fields) for reason in reasons)

    def measure_worker(self) -> None:
        """Note how much memory this process has."""
        self.worker_bytes = psutil.Process().memory_info().rss

    def __iadd__(self, other: TaskCounts) -> Self:
        for each in fields(self):
            together = max if each.name in ("latency_most", "worker_bytes") else operator.add
            setattr(self, each.name, together(getattr(self, each.name), getattr(other, each.name)))
        return self


class Arrivals:
    """When a task's events came, by Kafka's timestamps: how many, the first, and all together."""

    def __init__(self) -> None:
        self._count, self._total = 0, 0
        self._first: int | None = None

    @property
    def first(self) -> datetime:
        """The first of those that came so far, in UTC."""
        return datetime.fromtimestamp((self._first or 0) / 1000, UTC)

    def note(self, timestamps: pa.Array) -> None:
        """Take a batch's timestamps in."""
        times = timestamps.cast(_MILLISECONDS, safe=False).cast(pa.int64())
        if len(times):
            self._count += len(times)
            self._total += compute.sum(times).as_py()
            first = compute.min(times).as_py()
            self._first = first if self._first is None else min(self._first, first)

    def count_latency(self, counts: TaskCounts) -> None:
        """Say that all of them are in the warehouse now."""
        if self._first is not None:
            now = time.time() * 1000
            counts.latency_total += (self._count * now - self._total) / 1000
            counts.latency_most = max(counts.latency_most, (now - self._first) / 1000)


class AddCounts(AccumulatorParam[TaskCounts]):
    """Lets Spark add up what tasks counted; it takes those that were done in vain not into account."""

    def zero(self, value: TaskCounts) -> TaskCounts:  # noqa: ARG002  # Spark's interface
        """Begin with nothing."""
        return TaskCounts()

    def addInPlace(self, value1: TaskCounts, value2: TaskCounts) -> TaskCounts:  # noqa: N802  # Spark's interface
        """Add the second to the first."""
        value1 += value2
        return value1


def kind_of(reason: str, known_fields: Collection[str]) -> str:
    """Shorten a reason to one of few kinds: without the value."""
    about = reason.partition(":")[0]
    return reason.partition(", got ")[0] if about in known_fields else about
