"""The lease of a pipeline: only one application at a time works on it.

An application holds a named lock of the warehouse's server for as long as it lives. The server releases the lock when
the connection ends, however it ends: after a kill -9 nobody holds the lock. Each query waits a few seconds at most, so
a server that hangs does not keep an application from stopping.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Self

import pymysql

from foundation.connections import ANSWER_SECONDS, connect
from foundation.errors import AlreadyRunningError
from spark_apps.pipeline.dags import dag_of

if TYPE_CHECKING:
    from types import TracebackType

    from foundation.connections import Login

# Roles: the application that enriches, and the keepers of the long-running programs.
APPLICATION, KEEPER_OF_STREAM, KEEPER_OF_GENERATOR = "pipeline", "keeper.enrich_stream", "keeper.generator"
LOCK_SECONDS = 2  # time for the server to drop a dead connection, for example our previous one


class Lease:
    """The right to work on a pipeline, held from `with` to its end.

    Args:
        loader: login of the loader's account.
        pipeline: the pipeline's name.
        role: the work; there is one holder for each pipeline and role.
    """

    def __init__(self, loader: Login, pipeline: str, role: str = APPLICATION) -> None:
        self._loader = loader
        self._pipeline = pipeline
        self._name = _lock_name(pipeline, role)
        self._holder = 0  # the server's id of that connection of ours that held the lock last

    def __enter__(self) -> Self:
        self._acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with suppress(pymysql.Error):  # otherwise the server releases the lock itself, only later
            with self._connection.cursor() as cursor:
                cursor.execute("DO RELEASE_LOCK(%s)", (self._name,))
            self._context.__exit__(kind, error, traceback)

    def keep(self) -> None:
        """Acquire the lease again if its connection is lost. If the server does not answer, the next call retries.

        Raises:
            AlreadyRunningError: another one acquired the lease meanwhile.
        """
        try:
            self._connection.ping(reconnect=False)
        except pymysql.Error:
            with suppress(pymysql.OperationalError):
                self._acquire()

    def _acquire(self) -> None:
        self._context = connect(self._loader, answer_seconds=ANSWER_SECONDS)
        self._connection = self._context.__enter__()
        with self._connection.cursor() as cursor:
            name = self._name
            holder, ours = None, 0
            while holder is None:  # the holder can release the lock between the two functions
                cursor.execute("SELECT GET_LOCK(%s, %s), IS_USED_LOCK(%s), CONNECTION_ID()", (name, LOCK_SECONDS, name))
                ((_, holder, ours),) = cursor.fetchall()
        if holder == ours:
            self._holder = ours
        elif holder == self._holder < ours:  # ids begin again when the server restarts
            self._connection.close()  # the server still has our previous connection: the next call tries again
        else:
            self._connection.close()  # a ping of it would answer as if the lease were ours
            raise AlreadyRunningError(
                f"pipeline {self._pipeline!r}: another application works on it",
                f"Stop that one first (Dag {dag_of('stop', self._pipeline)}).",
            )


def is_held(loader: Login, pipeline: str, role: str = APPLICATION) -> bool:
    """Return whether somebody holds the lease now."""
    with connect(loader, answer_seconds=ANSWER_SECONDS) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT IS_USED_LOCK(%s)", (_lock_name(pipeline, role),))
        ((holder,),) = cursor.fetchall()
    return holder is not None


def _lock_name(pipeline: str, role: str) -> str:
    return f"freshet.{role}.{pipeline}"
