"""Run one stream in several processes: each of n processes sends every n-th event, and one report counts all."""

import multiprocessing as mp
import signal
from typing import TYPE_CHECKING

from generator.pump import open_sink, pump, warm_up
from generator.settings import StreamSettings
from generator.sinks import SinkError, Stop
from generator.stream import Share
from generator.target import Target

if TYPE_CHECKING:
    import ctypes
    from multiprocessing.context import SpawnProcess
    from multiprocessing.queues import SimpleQueue
    from multiprocessing.synchronize import Event, Semaphore

    from generator.tally import Tally

_POLL_SECONDS = 0.05
_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_spawn = mp.get_context("spawn")  # a fork would copy locks that other threads hold


class Workers:
    """The processes of one run; the constructor returns when all are ready."""

    def __init__(
        self, settings: StreamSettings, target: Target, tallies: "ctypes.Array[Tally]", stop: Stop, tag: int
    ) -> None:
        self._stop = stop
        self._go = _spawn.Event()
        self._failures: SimpleQueue[str] = _spawn.SimpleQueue()
        self._ready = _spawn.Semaphore(0)  # an attribute, so that it is not deleted before the last child has opened it
        self._processes: list[SpawnProcess] = []
        for index in range(target.processes):
            share = Share(index, target.processes)
            arguments = (settings, target, tallies, share, tag, self._ready, self._go, self._failures)
            self._processes.append(_spawn.Process(target=_work, args=arguments, daemon=True))
        # Children inherit the blocked signals and unblock them when their handlers are installed.
        blocked_before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            for process in self._processes:
                process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked_before)
        waiting = len(self._processes)
        while waiting and all(process.is_alive() for process in self._processes) and not stop.requested:
            waiting -= self._ready.acquire(timeout=_POLL_SECONDS)

    def run(self) -> str | None:
        """Start all at once, wait for the last, and return the message of a failure, or None."""
        self._go.set()
        terminated = False
        for process in self._processes:
            while process.is_alive():
                process.join(_POLL_SECONDS)
                if not terminated and (self._stop.requested or self._one_failed()):
                    terminated = True
                    self._terminate()
        if not self._failures.empty():
            return self._failures.get()
        for index, process in enumerate(self._processes):
            if process.exitcode != 0:
                return f"processes: number {index} ended with exit code {process.exitcode}; look at its output"
        return None

    def _one_failed(self) -> bool:
        return not self._failures.empty() or any(process.exitcode for process in self._processes)

    def _terminate(self) -> None:
        """Send SIGTERM to all: they send no more events, and wait for acknowledgements."""
        for process in self._processes:
            process.terminate()


def _work(
    settings: StreamSettings,
    target: Target,
    tallies: "ctypes.Array[Tally]",
    share: Share,
    tag: int,
    ready: "Semaphore",
    go: "Event",
    failures: "SimpleQueue[str]",
) -> None:
    """Run one process: get ready, wait for the others, send its share."""
    parent = mp.parent_process()
    stop = Stop(also=lambda: parent is not None and not parent.is_alive())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which sends SIGTERM
    signal.signal(signal.SIGTERM, lambda *_: stop.request())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    if stop.requested:
        return
    tally = tallies[share.index]
    try:
        sink = open_sink(target, tally, stop)
        warm_up(settings)
        ready.release()
        while not go.wait(_POLL_SECONDS):
            if stop.requested:
                break
        pump(settings, sink, tally, stop, share, tag)
    except (SinkError, OSError) as error:
        failures.put(str(error))
