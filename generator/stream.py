"""Combine times and values into the stream: batches of events."""

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from generator.arrivals import arrival_times, chunk_seconds
from generator.events import Events, make_events
from generator.settings import StreamSettings
from generator.values import recipe

BATCH_EVENTS = 65_536
_MICROS = 1_000_000
_FOREVER = 2**62


@dataclass(frozen=True)
class Share:
    """The events of one of several processes: index, index + count, index + 2 count, ... of the whole stream."""

    index: int = 0
    count: int = 1


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of stream time: its events, their times since the start, and its own end (both microseconds)."""

    events: Events
    offsets: np.ndarray[tuple[int], np.dtype[np.int64]]
    end: int


def choose_tag(settings: StreamSettings) -> int:
    """Choose the run's 32 bits in event ids: random, or in simulated time from the seed, so that a run can repeat."""
    if settings.simulated_from is not None:
        return int(np.random.default_rng(settings.seed).integers(2**32))
    return secrets.randbits(32)


def timed_chunks(settings: StreamSettings, share: Share, start_ms: int, tag: int) -> Iterator[Chunk]:
    """Yield the scheduled stream, from `start_ms` (milliseconds since 1970) to its limits.

    With a limit of events, the last event ends the stream for every process.
    """
    plan = recipe(settings)
    chunk_micros = round(chunk_seconds(settings) * _MICROS)
    last = _FOREVER if settings.duration is None else round(settings.duration * _MICROS)
    end, first = 0, 0
    for times in arrival_times(settings):
        end = min(end + chunk_micros, last)
        offsets = times[: np.searchsorted(times, end)]
        if settings.events is not None:
            offsets = offsets[: settings.events - first]
            if first + len(offsets) == settings.events:
                end = int(offsets[-1]) if len(offsets) else 0
        mine = slice((share.index - first) % share.count, None, share.count)
        numbers = np.arange(first, first + len(offsets))[mine]
        first += len(offsets)
        offsets = offsets[mine]
        yield Chunk(make_events(plan, numbers, start_ms + offsets // 1000, tag), offsets, end)
        if end == last or first == settings.events:
            return


def unpaced_batches(settings: StreamSettings, share: Share, tag: int) -> Iterator[Events]:
    """Yield the stream without a schedule; `sold_at` is the time at which the batch is made."""
    plan = recipe(settings)
    began = time.monotonic()
    number = share.index
    step = BATCH_EVENTS * share.count
    while settings.duration is None or time.monotonic() - began < settings.duration:
        stop = number + step if settings.events is None else min(number + step, settings.events)
        numbers = np.arange(number, stop, share.count)
        if len(numbers) == 0:
            return
        sold_at = np.full(len(numbers), time.time_ns() // _MICROS)
        yield make_events(plan, numbers, sold_at, tag)
        number += step
