"""The stop of an application: the one place that knows whether it is asked to stop.

There are three ways to ask. An operator sets the stop request in the table `pipeline_control`. The system sends
SIGTERM. The Airflow task that started the application dies without ending it. The application looks for a stop between
two batches. Correctness never depends on that: an application that is killed instead loses nothing.
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

from foundation.connections import ANSWER_SECONDS, connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from foundation.connections import Login

# The process id of the Airflow task that started this application. If not set, the application is never an orphan.
ASKED_BY = "FRESHET_ASKED_BY"
IS_RETRY = "FRESHET_IS_RETRY"  # not empty: this start follows one that failed
LOOK_SECONDS = 1
LONGEST_STOP_SECONDS = 20.0


class StopAskedError(Exception):
    """Ends the query before its next batch. It is no failure, so it is not in the tree of foundation/errors.py."""


class Stop:
    """Knows whether an application is asked to stop; once it is, that does not change.

    Args:
        loader: login of the account that reads and drops the stop request.
        pipeline: the name of the application's pipeline.
    """

    def __init__(self, loader: Login, pipeline: str) -> None:
        self._loader = loader
        self._pipeline = pipeline
        self._asked = threading.Event()

    @property
    def is_asked(self) -> bool:
        """Whether a stop is known to be requested."""
        return self._asked.is_set()

    def obey_sigterm(self) -> None:
        """Treat SIGTERM as a request to stop."""
        signal.signal(signal.SIGTERM, lambda _number, _frame: self._asked.set())

    def begin(self) -> None:
        """Drop a stop request from before this start, then look whether a stop is requested.

        A retry keeps the stop request: it came while Airflow waited to start the application again.
        """
        with connect(self._loader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
            cursor.execute("INSERT IGNORE INTO pipeline_control (pipeline) VALUES (%s)", (self._pipeline,))
        if not os.environ.get(IS_RETRY):
            self._drop_request()
        self.look()

    def look(self) -> bool:
        """Look whether a stop is requested, and return the answer."""
        if not self.is_asked and (is_orphan() or is_requested(self._loader, self._pipeline)):
            self._asked.set()
        return self.is_asked

    def rest(self, seconds: float) -> None:
        """Wait so many seconds, or until a stop is requested."""
        until = time.monotonic() + seconds
        while not self.look() and (left := until - time.monotonic()) > 0:
            self._asked.wait(min(LOOK_SECONDS, left))

    @contextmanager
    def limited(self, break_off: Callable[[], None], seconds: float = LONGEST_STOP_SECONDS) -> Iterator[None]:
        """Call `break_off` if the block still runs `seconds` after a stop request, as when the warehouse hangs."""
        ended = threading.Event()

        def watch() -> None:
            self._asked.wait()
            if not ended.wait(seconds):
                print(
                    f"enrich_stream: still running {seconds:.0f} s after the request to stop. Its batch is broken off; "
                    "the next start runs that batch again.",
                    flush=True,
                )
                break_off()

        threading.Thread(target=watch, daemon=True).start()
        try:
            yield
        finally:
            ended.set()

    def end(self) -> None:
        """Drop the stop request, which is met. An orphan keeps it, because Airflow starts the application again."""
        if not is_orphan():
            with suppress(pymysql.Error):
                self._drop_request()

    def _drop_request(self) -> None:
        _set_request(self._loader, self._pipeline, asked=False)


def request(loader: Login, pipeline: str) -> None:
    """Ask a pipeline's application to stop before its next batch; a batch that takes too long is broken off."""
    _set_request(loader, pipeline, asked=True)


def is_requested(loader: Login, pipeline: str) -> bool:
    """Return whether an operator has requested a stop, False if the warehouse does not answer."""
    with (
        suppress(pymysql.OperationalError, pymysql.InterfaceError),
        connect(loader, answer_seconds=ANSWER_SECONDS) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT stop_requested FROM pipeline_control WHERE pipeline = %s", (pipeline,))
        return any(requested for (requested,) in cursor.fetchall())
    return False


def is_orphan() -> bool:
    """Return whether the process that started this application, an Airflow task, has died without ending it."""
    asked_by = os.environ.get(ASKED_BY)
    return asked_by is not None and not psutil.pid_exists(int(asked_by))


def _set_request(loader: Login, pipeline: str, *, asked: bool) -> None:
    with connect(loader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE pipeline_control SET stop_requested = %s WHERE pipeline = %s", (asked, pipeline))
