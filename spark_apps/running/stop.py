"""The stop of a program: the one place that knows whether it is asked to end.

Three can ask: an operator, by the wish (spark_apps/running/wish.py); the system, by SIGTERM; and the keeper that
started the program, by dying without ending it. A stop is looked for between two batches. Correctness never depends
on it: an application that is killed instead loses nothing.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import psutil
import pymysql

from spark_apps.running.wish import read_wish

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from foundation.connections import Login
    from spark_apps.running.wish import Program

KEPT_BY = "FRESHET_KEPT_BY"  # the process id of the keeper; without it, nobody waits for this program's end
RUN_ID = "FRESHET_RUN_ID"  # the run of Airflow that wished this program; without it, any wish will do
LOOK_SECONDS = 1
LONGEST_STOP_SECONDS = 20.0


class StopAskedError(Exception):
    """Ends the query before a batch that is not begun; no failure, and in no tree of errors."""


class Stop:
    """Whether a program is to end. Once asked, it stays asked.

    Args:
        loader: the account that reads the wish.
        pipeline: the program's.
        program: which one.
    """

    def __init__(self, loader: Login, pipeline: str, program: Program = "enrich_stream") -> None:
        self._loader = loader
        self._pipeline = pipeline
        self._program = program
        self._asked = threading.Event()

    @property
    def is_asked(self) -> bool:
        """Whether somebody has asked, as far as is known."""
        return self._asked.is_set()

    def obey_sigterm(self) -> None:
        """Take SIGTERM for a request."""
        signal.signal(signal.SIGTERM, lambda _number, _frame: self._asked.set())

    def look(self) -> bool:
        """Look for a request, and return whether there is one."""
        if not self.is_asked and (is_orphan() or is_wished(self._loader, self._pipeline, self._program)):
            self._asked.set()
        return self.is_asked

    def rest(self, seconds: float, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Wait, unless asked to stop meanwhile."""
        until = time.monotonic() + seconds
        while not self.look() and (left := until - time.monotonic()) > 0:
            self._asked.wait(min(LOOK_SECONDS, left))
            meanwhile()

    @contextmanager
    def limited(self, break_off: Callable[[], None], seconds: float = LONGEST_STOP_SECONDS) -> Iterator[None]:
        """Call `break_off` if the block still runs `seconds` after a request, for example on a warehouse that hangs."""
        ended = threading.Event()

        def watch() -> None:
            self._asked.wait()
            if not ended.wait(seconds):
                print(
                    f"enrich_stream: it has not ended {seconds:.0f} s after the request to stop. Its batch is broken "
                    "off; the next start runs that batch again.",
                    flush=True,
                )
                break_off()

        threading.Thread(target=watch, daemon=True).start()
        try:
            yield
        finally:
            ended.set()


def is_wished(loader: Login, pipeline: str, program: Program) -> bool:
    """Return whether a stop is wished, or another start of the program, for which this one has to make room.

    A warehouse that does not answer, or knows of no wish, wishes nothing.
    """
    with suppress(pymysql.OperationalError, pymysql.InterfaceError):
        wish = read_wish(loader, pipeline, program)
        return wish is not None and not (wish.running and os.environ.get(RUN_ID) in {None, wish.run_id})
    return False


def is_orphan() -> bool:
    """Return whether the keeper that started this program has died without ending it."""
    kept_by = os.environ.get(KEPT_BY)
    return kept_by is not None and not psutil.pid_exists(int(kept_by))
