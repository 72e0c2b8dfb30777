"""Run a stream into a sink, in this process or in several, and report exactly what was acknowledged.

Slow modules are imported where they are used, so that the caller can install its signal handlers first.
"""

import multiprocessing as mp
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from generator.settings import MAX_SECONDS, SettingError, StreamSettings
from generator.sinks import SinkError, Stop
from generator.tally import Report, Tally, now_micros
from generator.target import Target

if TYPE_CHECKING:
    import ctypes


def run_stream(
    settings: StreamSettings,
    target: Target,
    *,
    stop: Stop | None = None,
    on_progress: Callable[[str], None] | None = None,
    progress_seconds: float = 5.0,
) -> Report:
    """Run the stream to its end, or until `stop` is requested.

    It prints nothing and installs no signal handler; the caller can do both.
    """
    target.check(settings)
    if not 0 <= progress_seconds <= MAX_SECONDS:
        raise SettingError(
            f"progress: must be 0 (none) to {MAX_SECONDS:.0f} seconds, got {progress_seconds}; 5 is the default"
        )
    stop = stop or Stop()
    if target.sink == "kafka":
        from generator.kafka_sink import ensure_topic

        ensure_topic(str(target.bootstrap), str(target.topic), target.create_partitions)
    tallies = mp.RawArray(Tally, target.processes)
    finished = threading.Event()
    if on_progress is not None and progress_seconds > 0:
        arguments = (tallies, finished, on_progress, progress_seconds)
        threading.Thread(target=_report_progress, args=arguments, daemon=True).start()
    try:
        began, failure = _run_together(settings, target, tallies, stop)
    finally:
        finished.set()
    return replace(Report.of(tallies, time.monotonic() - began), failure=failure)


def _run_together(
    settings: StreamSettings, target: Target, tallies: "ctypes.Array[Tally]", stop: Stop
) -> tuple[float, str | None]:
    """Run the stream in one process or several; return when it began, and what failed."""
    from generator.pump import open_sink, pump, warm_up
    from generator.stream import Share, choose_tag

    tag = choose_tag(settings)
    if target.processes > 1:
        from generator.processes import Workers

        workers = Workers(settings, target, tallies, stop, tag)
        return time.monotonic(), workers.run()
    warm_up(settings)
    began = time.monotonic()
    try:
        if not stop.requested:
            pump(settings, open_sink(target, tallies[0], stop), tallies[0], stop, Share(), tag)
    except (SinkError, OSError) as error:
        return began, str(error)
    return began, None


def _report_progress(
    tallies: "ctypes.Array[Tally]", finished: threading.Event, on_progress: Callable[[str], None], every: float
) -> None:
    """Report at intervals: current rate, events sent and acknowledged, lag behind schedule."""
    began = before = time.monotonic()
    acknowledged_before = 0
    while not finished.wait(every):
        now = time.monotonic()
        report = Report.of(tallies, now - began)
        rate = (report.acknowledged - acknowledged_before) / (now - before)
        lag = max(tally.lag(now_micros()) for tally in tallies) / 1e6
        on_progress(
            f"{now - began:8.1f} s  {rate:,.0f}/s  sent {report.sent:,}  acknowledged {report.acknowledged:,}"
            f"  behind schedule {lag:.2f} s"
        )
        before, acknowledged_before = now, report.acknowledged
