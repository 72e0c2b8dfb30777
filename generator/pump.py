"""The work of one process: write its share of the stream into its sink, on time."""

import gc
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from generator.file_sinks import JsonSink, NullSink, ParquetSink, create
from generator.settings import StreamSettings
from generator.sinks import Sink, SinkError, Stop
from generator.stream import Chunk, Share, timed_chunks, unpaced_batches
from generator.tally import Tally, now_micros
from generator.target import Target

_LARGEST_WRITE = 20_000
_SHORTEST_SLEEP = 0.01  # the events of a slow stream are collected for so many seconds, then sent together
_LONGEST_SLEEP = 0.05  # the longest time without a check for a stop request


def open_sink(target: Target, tally: Tally, stop: Stop) -> Sink:
    """Open the target's sink."""
    match target.sink:
        case "kafka":
            from generator.kafka_sink import KafkaSink

            return KafkaSink(str(target.bootstrap), str(target.topic), tally, stop)
        case "json":
            return JsonSink(create(Path(str(target.path))), tally)
        case "parquet":
            return ParquetSink(str(target.path), tally)
        case "stdout":
            return JsonSink(sys.stdout.buffer, tally)
        case "none":
            return NullSink(tally)


def warm_up(settings: StreamSettings) -> None:
    """Compile or load the kernels, and exclude all existing objects from garbage collection.

    kafka-python makes a dozen objects for each event, which cause many collections; each would visit all modules.
    """
    gc.freeze()
    for chunk in timed_chunks(replace(settings, rate=settings.rate or 1.0, duration=1.0), Share(), 0, 0):
        chunk.events.part(0, 1).json_lines()
        return


def pump(settings: StreamSettings, sink: Sink, tally: Tally, stop: Stop, share: Share, tag: int) -> None:
    """Write this process' share of the stream into the sink, and close the sink."""
    cpu_before = time.process_time_ns()
    try:
        _fill(settings, sink, tally, stop, share, tag)
    except BaseException:
        with suppress(SinkError, OSError):  # the first error has the cause
            sink.close()
        raise
    else:
        sink.close()
    finally:
        tally.cpu = (time.process_time_ns() - cpu_before) // 1000


def _fill(settings: StreamSettings, sink: Sink, tally: Tally, stop: Stop, share: Share, tag: int) -> None:
    if settings.simulated_from is not None:
        for chunk in timed_chunks(settings, share, settings.simulated_start_ms(), tag):
            if stop.requested:
                return
            if len(chunk.events):
                sink.write(chunk.events)
    elif settings.rate is None:
        for events in unpaced_batches(settings, share, tag):
            if stop.requested:
                return
            sink.write(events)
    else:
        began = now_micros()
        for chunk in timed_chunks(settings, share, time.time_ns() // 1_000_000, tag):
            if stop.requested:
                return
            _write_when_due(chunk, began, sink, tally, stop)


def _write_when_due(chunk: Chunk, began: int, sink: Sink, tally: Tally, stop: Stop) -> None:
    """Write each event when it is due; write late events as fast as the sink accepts them."""
    at, size = 0, len(chunk.events)
    while not stop.requested:
        elapsed = now_micros() - began
        due = min(int(np.searchsorted(chunk.offsets, elapsed, "right")), at + _LARGEST_WRITE)
        if due > at:
            tally.waiting_since = began + int(chunk.offsets[at])
            tally.note_lag(tally.waiting_since)
            sink.write(chunk.events.part(at, due))
            tally.waiting_since = 0
            at = due
            continue
        if at == size and elapsed >= chunk.end:
            return
        sink.settle()
        wake = chunk.end if at == size else int(chunk.offsets[at])
        time.sleep(min(max((wake - elapsed) / 1_000_000, _SHORTEST_SLEEP), _LONGEST_SLEEP))
