"""One application a pipeline, and a way to ask it to stop.

An application holds a named lock of the warehouse's server for as long as it lives. The server lets the lock go when
the connection ends, however it ends: what the lock says is true even after a kill -9. No question waits long for its
answer, so that a server that hangs keeps nobody from stopping.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Self

import pymysql

from foundation.connections import ANSWER_SECONDS, connect
from foundation.errors import AlreadyRunningError

if TYPE_CHECKING:
    from types import TracebackType

    from foundation.connections import Connection, Login


LOCK_SECONDS = 2  # until the server sees that a connection has ended, our own that broke off for one


class Lease:
    """The right to work on a pipeline, held from `with` to its end.

    Args:
        loader: the account.
        pipeline: which one.
        goes_on: a request to stop that is there already is meant for whoever takes this lease, who goes on with what
            another one began; otherwise it was for one that has ended, and is forgotten.
    """

    def __init__(self, loader: Login, pipeline: str, *, goes_on: bool = False) -> None:
        self._loader = loader
        self._pipeline = pipeline
        self._goes_on = goes_on
        self._holder = 0  # the server's number of our connection that had the lock last

    def __enter__(self) -> Self:
        self._acquire()
        with self._connection.cursor() as cursor:
            cursor.execute("INSERT IGNORE INTO pipeline_control (pipeline) VALUES (%s)", (self._pipeline,))
        self._connection.commit()
        if not self._goes_on:
            self.forget_request()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with suppress(pymysql.Error):  # the server lets go by itself, if only later
            with self._connection.cursor() as cursor:
                cursor.execute("DO RELEASE_LOCK(%s)", (_lock_name(self._pipeline),))
            self._context.__exit__(kind, error, traceback)

    def stop_requested(self) -> bool:
        """Tell whether an operator asked to stop; takes the lease again if the server was away."""
        try:
            return _is_stop_requested(self._connection, self._pipeline)
        except (pymysql.OperationalError, pymysql.InterfaceError):  # it went away, or has been away since the last look
            with suppress(pymysql.OperationalError):  # still away: the next call tries again
                self._acquire()
            return False

    def forget_request(self) -> None:
        """Forget that an operator asked to stop: the request was for one that has ended, or is met."""
        with self._connection.cursor() as cursor:
            cursor.execute("UPDATE pipeline_control SET stop_requested = FALSE WHERE pipeline = %s", (self._pipeline,))
        self._connection.commit()

    def _acquire(self) -> None:
        self._context = connect(self._loader, answer_seconds=ANSWER_SECONDS)
        self._connection = self._context.__enter__()
        with self._connection.cursor() as cursor:
            name = _lock_name(self._pipeline)
            holder, ours = None, 0
            while holder is None:  # another one's may end between the two questions
                cursor.execute("SELECT GET_LOCK(%s, %s), IS_USED_LOCK(%s), CONNECTION_ID()", (name, LOCK_SECONDS, name))
                ((_, holder, ours),) = cursor.fetchall()
        if holder == ours:
            self._holder = ours
        elif holder == self._holder < ours:  # numbers begin anew with a server that was started again
            self._connection.close()  # the server is busy with our former one: the next look tries again
        else:
            raise AlreadyRunningError(
                f"pipeline {self._pipeline!r}: another application works on it",
                "Stop that one first (Dag stop_enrich_stream).",
            )


def request_stop(loader: Login, pipeline: str) -> None:
    """Ask the application to stop before its next batch; one that takes long is broken off."""
    with connect(loader) as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE pipeline_control SET stop_requested = TRUE WHERE pipeline = %s", (pipeline,))


def is_stop_requested(loader: Login, pipeline: str) -> bool:
    """Tell whether an operator asked the application to stop; a warehouse that does not answer tells of no request."""
    with (
        suppress(pymysql.OperationalError, pymysql.InterfaceError),
        connect(loader, answer_seconds=ANSWER_SECONDS) as connection,
    ):
        return _is_stop_requested(connection, pipeline)
    return False


def is_running(loader: Login, pipeline: str) -> bool:
    """Tell whether an application works on the pipeline now."""
    with connect(loader) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT IS_USED_LOCK(%s)", (_lock_name(pipeline),))
        ((holder,),) = cursor.fetchall()
    return holder is not None


def _is_stop_requested(connection: Connection, pipeline: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT stop_requested FROM pipeline_control WHERE pipeline = %s", (pipeline,))
        found = cursor.fetchall()
    connection.commit()  # the next look is to see what is new by then
    return any(requested for (requested,) in found)


def _lock_name(pipeline: str) -> str:
    return f"freshet.pipeline.{pipeline}"
