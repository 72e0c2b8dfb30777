"""Several processes share one stream: each sends every n-th event, and all count into one report."""

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

_GLANCE_SECONDS = 0.05
_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_spawn = mp.get_context("spawn")  # a fork would copy the threads' locks


class Workers:
    """The processes of one run, started and ready when this returns."""

    def __init__(
        self, settings: StreamSettings, target: Target, tallies: "ctypes.Array[Tally]", stop: Stop, tag: int
    ) -> None:
        self._stop = stop
        self._go = _spawn.Event()
        self._failures: SimpleQueue[str] = _spawn.SimpleQueue()
        self._ready = _spawn.Semaphore(0)  # kept: a child that starts late still looks for it
        self._processes: list[SpawnProcess] = []
        for index in range(target.processes):
            share = Share(index, target.processes)
            arguments = (settings, target, tallies, share, tag, self._ready, self._go, self._failures)
            self._processes.append(_spawn.Process(target=_work, args=arguments, daemon=True))
        # Children inherit what is blocked: a signal waits until they can answer it.
        blocked_before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            for process in self._processes:
                process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked_before)
        waiting = len(self._processes)
        while waiting and all(process.is_alive() for process in self._processes) and not stop.requested:
            waiting -= self._ready.acquire(timeout=_GLANCE_SECONDS)

    def run(self) -> str | None:
        """Let them all begin at once, and wait for the last; the result says what failed."""
        self._go.set()
        told = False
        for process in self._processes:
            while process.is_alive():
                process.join(_GLANCE_SECONDS)
                if not told and (self._stop.requested or self._one_failed()):
                    told = True
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
        """Ask all to end: they send no more, and wait for acknowledgements."""
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
    """One process: get ready, wait for the others, do its share."""
    parent = mp.parent_process()
    stop = Stop(also=lambda: parent is not None and not parent.is_alive())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C reaches the parent too, who passes it on
    signal.signal(signal.SIGTERM, lambda *_: stop.request())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    if stop.requested:
        return
    tally = tallies[share.index]
    try:
        sink = open_sink(target, tally, stop)
        warm_up(settings)
        ready.release()
        while not go.wait(_GLANCE_SECONDS):
            if stop.requested:
                break
        pump(settings, sink, tally, stop, share, tag)
    except (SinkError, OSError) as error:
        failures.put(str(error))
