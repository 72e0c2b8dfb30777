"""How long each stream tuple takes, on the clock of `papers_clock.py`, measured outside the joins.

- Waiting time: from the arrival of a tuple until the join reads it from the stream buffer, at a constant arrival rate
  (HYBRIDJOIN 2011, section 3, figure 7b).
- Processing time: from then until its output (HYBRIDJOIN 2011, figure 7a; CHYBRIDJOIN 2017, figure 6). It is 0 for a
  tuple that the front stage matches.

A tuple is known by its number, a column of the stream. An iteration first reads tuples and outputs those that the front
stage matches, then reads a page of R. So the clock is noted before each iteration, when tuples are read, and after it.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from semistream.joins import SemiStreamJoin

from benchmarks.benchmark_papers import BATCH, STREAM
from benchmarks.papers_clock import seconds

__all__ = ["Keys", "Summary", "Times", "batches", "tuple_times"]

Keys = Callable[[np.ndarray], np.ndarray]  # from the numbers of stream tuples to their keys


class Summary(NamedTuple):
    """Seconds."""

    mean: float
    p50: float
    p99: float

    @classmethod
    def of(cls, times: np.ndarray) -> "Summary":
        """Summarise the times of tuples."""
        return cls(float(times.mean()), *np.percentile(times, [50, 99]).tolist())


class Times(NamedTuple):
    """Modelled seconds of each measured tuple."""

    waiting: np.ndarray
    processing: np.ndarray


def batches(keys: Keys, first: int = 0) -> Iterator[pa.RecordBatch]:
    """Yield an endless stream whose tuples are numbered."""
    for start in itertools.count(first, BATCH):
        numbers = np.arange(start, start + BATCH)
        columns = [pa.array(keys(numbers)), pa.array(numbers), pa.array(numbers.astype(np.int32))]
        yield pa.RecordBatch.from_arrays(columns, schema=STREAM)


def tuple_times(join: SemiStreamJoin, keys: Keys, warm: int, measured: int, rate: float = np.inf) -> Times:
    """Let tuples arrive at a rate, all with one match in R, and time those that come after the first `warm`.

    Args:
        join: a new join, which outputs rows.
        keys: the stream.
        warm: tuples that are not measured.
        measured: tuples that are; others come behind them until the last of them is out.
        rate: tuples a second; by default the stream buffer is always full, and should have room for w tuples.
    """
    read, out = np.full(measured, np.nan), np.full(measured, np.nan)
    source = _Source(keys, rate)
    start, idle = seconds(join), 0.0

    def clock() -> float:
        return seconds(join) - start + idle

    while np.isnan(out).any():
        if not join.pending and not len(join.stream_buffer):
            idle += max(0.0, source.next_arrival - clock())
        source.offer(join, clock())
        first, hits, now = join.stream_buffer.oldest, join.front_stage.hits, clock()
        joined = [batch["number"].to_numpy() for batch in join.step()]
        read[max(first - warm, 0) : max(join.stream_buffer.oldest - warm, 0)] = now
        numbers = np.concatenate([np.empty(0, dtype=np.int64), *joined]) - warm
        at = np.full(len(numbers), clock())
        at[: join.front_stage.hits - hits] = now
        ours = (numbers >= 0) & (numbers < measured)
        out[numbers[ours]] = at[ours]
    return Times(read - np.arange(warm, warm + measured) / rate, out - read)


class _Source:
    """Tuples that arrive at a constant rate, and wait here while the stream buffer has no room."""

    def __init__(self, keys: Keys, rate: float) -> None:
        self._batches = batches(keys)
        self._rest = next(self._batches)
        self._rate = rate
        self._offered = 0

    @property
    def next_arrival(self) -> float:
        """Return when the first tuple arrives that has not been offered."""
        return self._offered / self._rate

    def offer(self, join: SemiStreamJoin, now: float) -> None:
        """Put the tuples that have arrived into the stream buffer, as many as it has room for."""
        due = (BATCH * 2**20 if np.isinf(self._rate) else int(now * self._rate + 1e-6) + 1) - self._offered
        while due > 0:
            piece = join.stream_buffer.pieces(self._rest.slice(0, due))[0]
            if not join.stream_buffer.has_room(piece):
                return
            join.offer(piece)
            self._offered += piece.num_rows
            due -= piece.num_rows
            self._rest = self._rest.slice(piece.num_rows)
            if not self._rest.num_rows:
                self._rest = next(self._batches)
