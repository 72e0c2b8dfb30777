"""Connections to the warehouse, one account a job."""

from __future__ import annotations

import struct
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import pymysql
from pymysql.constants import CLIENT

from foundation.settings import Settings, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    Connection = pymysql.connections.Connection[pymysql.cursors.Cursor]

Account = Literal["root", "owner", "loader", "reader", "checker"]
CONNECT_TIMEOUT_SECONDS = 5
ANSWER_SECONDS = 5  # for small questions of who has a stop flag to look at
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Login:
    """Who connects where; the password never shows in a log."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    database: str | None

    def without_database(self) -> Login:
        """The same, for a server that may not have the schema yet."""
        return replace(self, database=None)


def login(account: Account, chosen: Settings | None = None) -> Login:
    """Return the settings' login of an account."""
    chosen = chosen or settings()
    password = chosen.secret(f"{account}_password")
    return Login(chosen.mariadb_host, chosen.mariadb_port, account, password, chosen.database)


class BulkConnection(pymysql.connections.Connection):
    """A connection that may also send COM_STMT_BULK_EXECUTE, which pymysql does not know of.

    A client says so to MariaDB in the last four bytes of the filler in its first packet, and shows that they mean
    something by leaving a flag out that every client of MySQL sends ("Connecting" in MariaDB's manual).
    """

    _FILLER, _FILLED = slice(9, 32), bytes(19) + struct.pack("<I", 1 << 2)
    _greets = False

    def _request_authentication(self) -> None:
        self.client_flag &= ~CLIENT.LONG_PASSWORD
        self._greets = True
        super()._request_authentication()  # type: ignore[misc]  # pymysql's own, its version is pinned
        self._greets = False

    def write_packet(self, payload: bytes) -> None:
        """Send a packet, the first ones with the filler filled."""
        if self._greets and payload[self._FILLER] == bytes(len(self._FILLED)):
            payload = payload[: self._FILLER.start] + self._FILLED + payload[self._FILLER.stop :]
        super().write_packet(payload)


@contextmanager
def connect(who: Login, *, bulk: bool = False, answer_seconds: float | None = None) -> Iterator[Connection]:
    """Open a connection, commit at the end of the block, roll back on an error, close in any case.

    Args:
        who: the account.
        bulk: be ready to send rows by `spark_apps.warehouse.bulk_load`.
        answer_seconds: how long to wait for an answer; by default as long as it takes.
    """
    connection = (BulkConnection if bulk else pymysql.connect)(
        host=who.host,
        port=who.port,
        user=who.user,
        password=who.password,
        database=who.database,
        init_command="SET SESSION max_error_count = 65535" if bulk else None,  # as many warnings as it can keep
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        read_timeout=answer_seconds,
        ssl_disabled=who.host in LOOPBACK,  # nobody listens in between, and a handshake costs more than most tasks
    )
    try:
        yield connection
        connection.commit()
    except BaseException:
        if connection.open:
            connection.rollback()
        raise
    finally:
        if connection.open:
            connection.close()
