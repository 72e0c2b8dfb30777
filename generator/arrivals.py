"""Generate the times of events, with bursts that look alike at every time scale.

The construction of HYBRIDJOIN 2011, appendix, figure 9: N on/off sources, source i with bandwidth 2^i, wait in a
priority queue for their next toggle. A toggle re-queues the source after a random time proportional to its bandwidth.
The stream's rate is the total bandwidth of the sources that are on.

The pseudo-code leaves three things open. Here each source has an on/off state of its own; the sources start in their
stationary state, so the mean rate holds from the first second; and off times can be longer than on times, so that the
peak is `burstiness` times the mean (2 in the paper).
"""

from collections.abc import Iterator
from math import sqrt

import numpy as np
from numba import njit
from numpy.typing import NDArray

from generator.settings import StreamSettings

STEP_SECONDS = 0.01  # the paper's oneStep
_MICROS = 1_000_000
_EVENTS_PER_CHUNK = 65_536
_STEPS_PER_CHUNK = 1_024

Floats = NDArray[np.float64]


@njit(cache=True)
def _fill_levels(
    toggles: Floats, is_on: NDArray[np.bool_], duty: float, first_step: int, rng: np.random.Generator, levels: Floats
) -> None:
    """Write the mean total bandwidth of each step into `levels`; process the toggles of all sources in time order."""
    levels[:] = 0.0
    count = len(toggles)
    for step in range(len(levels)):
        since, end = float(first_step + step), first_step + step + 1.0
        total = 0.0
        for i in range(count):
            if is_on[i]:
                total += 2.0 ** (i + 1)
        while True:
            source = np.argmin(toggles)  # the head of the queue; for so few sources an array is the fastest queue
            if toggles[source] >= end:
                break
            bandwidth = 2.0 ** (source + 1)
            levels[step] += total * (toggles[source] - since)
            since = toggles[source]
            is_on[source] = not is_on[source]
            total += bandwidth if is_on[source] else -bandwidth
            stretch = 2.0 * duty if is_on[source] else 2.0 * (1.0 - duty)
            toggles[source] += rng.random() * bandwidth * stretch
        levels[step] += total * (end - since)


class Bursts:
    """The on/off sources. Their level is the rate over the mean rate: its long-run mean is 1, its peak `burstiness`."""

    def __init__(self, sources: int, burstiness: float, rng: np.random.Generator) -> None:
        self._rng = rng
        self._duty = 1.0 / burstiness
        self._is_on = rng.random(sources) < self._duty
        self._toggles = np.empty(sources)
        for i in range(sources):
            stretch = 2.0 * self._duty if self._is_on[i] else 2.0 * (1.0 - self._duty)
            # The interval around a random moment is length-biased, and the moment is uniform within it.
            self._toggles[i] = sqrt(rng.random()) * rng.random() * 2.0 ** (i + 1) * stretch
        self._mean = self._duty * (2.0 ** (sources + 1) - 2.0)
        self._step = 0

    def levels(self, steps: int) -> Floats:
        """Return the level of each of the next steps."""
        levels = np.empty(steps)
        if self._duty == 1.0:
            return np.ones(steps)
        _fill_levels(self._toggles, self._is_on, self._duty, self._step, self._rng, levels)
        self._step += steps
        return levels / self._mean


def counts_per_step(settings: StreamSettings, steps_per_chunk: int = _STEPS_PER_CHUNK) -> Iterator[NDArray[np.int64]]:
    """Yield the number of events in each step, chunk after chunk, without end."""
    rate = settings.rate or 0.0
    rng = np.random.default_rng(settings.seed)
    bursts = Bursts(settings.sources, settings.burstiness, rng)
    cycle = settings.active + settings.silent
    first = 0
    while True:
        levels = bursts.levels(steps_per_chunk)
        if cycle > 0:
            seconds = np.arange(first, first + steps_per_chunk) * STEP_SECONDS
            levels *= seconds % cycle < settings.active
        yield rng.poisson(rate * STEP_SECONDS * levels)
        first += steps_per_chunk


def arrival_times(settings: StreamSettings) -> Iterator[NDArray[np.int64]]:
    """Yield the times of all events in microseconds since the start, ascending, chunk after chunk.

    Each chunk covers `chunk_seconds`, even if it has no events.
    """
    steps = round(chunk_seconds(settings) / STEP_SECONDS)
    step_micros = round(STEP_SECONDS * _MICROS)
    first = 0
    for counts in counts_per_step(settings, steps):
        starts = np.repeat(np.arange(first, first + steps) * step_micros, counts)
        within = np.arange(len(starts)) - np.repeat(np.cumsum(counts) - counts, counts)
        yield starts + within * step_micros // np.repeat(np.maximum(counts, 1), counts)
        first += steps


def chunk_seconds(settings: StreamSettings) -> float:
    """Return the seconds that a chunk covers: from the settings alone, so that a seed always gives the same stream."""
    peak_per_step = (settings.rate or 0.0) * settings.burstiness * STEP_SECONDS
    steps = int(min(max(_EVENTS_PER_CHUNK / max(peak_per_step, 1e-9), 1), _STEPS_PER_CHUNK))
    return steps * STEP_SECONDS
