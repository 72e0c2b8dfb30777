"""One process' work: its share of the stream, at its time, into its sink."""

import gc
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from generator.file_sinks import JsonSink, NullSink, ParquetSink
from generator.settings import StreamSettings
from generator.sinks import Sink, SinkError, Stop
from generator.stream import Chunk, Share, timed_chunks, unpaced_batches
from generator.tally import Tally, now_micros
from generator.target import Target

_LARGEST_WRITE = 20_000
_SHORTEST_NAP = 0.01  # so that a slow stream is sent step by step, not event by event
_LONGEST_NAP = 0.05  # how soon a request to stop is seen


def open_sink(target: Target, tally: Tally, stop: Stop) -> Sink:
    """Make the sink that the target names."""
    match target.sink:
        case "kafka":
            from generator.kafka_sink import KafkaSink

            return KafkaSink(str(target.bootstrap), str(target.topic), tally, stop)
        case "json":
            return JsonSink(Path(str(target.path)).open("wb"), tally)
        case "parquet":
            return ParquetSink(str(target.path), tally)
        case "stdout":
            return JsonSink(sys.stdout.buffer, tally)
        case "none":
            return NullSink(tally)


def warm_up(settings: StreamSettings) -> None:
    """Compile or load the kernels before the clock starts, and spare the garbage collector what is loaded by now.

    kafka-python makes a dozen objects for each event; the collections they cause would walk through all modules.
    """
    gc.freeze()
    for chunk in timed_chunks(replace(settings, rate=settings.rate or 1.0, duration=1.0), Share(), 0, 0):
        chunk.events.part(0, 1).json_lines()
        return


def pump(settings: StreamSettings, sink: Sink, tally: Tally, stop: Stop, share: Share, tag: int) -> None:
    """Fill the sink with this process' share of the stream, and close it."""
    cpu_before = time.process_time_ns()
    try:
        _fill(settings, sink, tally, stop, share, tag)
    except BaseException:
        with suppress(SinkError, OSError):  # the first error is the one that says what happened
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
    """Write each event when its time has come; when late, as fast as the sink takes them."""
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
        time.sleep(min(max((wake - elapsed) / 1_000_000, _SHORTEST_NAP), _LONGEST_NAP))
