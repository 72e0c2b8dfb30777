"""Connections to the warehouse: one account for each job."""

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
ANSWER_SECONDS = 5  # longest wait for a small query, so that a server that hangs delays no stop
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Login:
    """Account and address of a connection; the password never shows in a log."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    database: str | None

    def without_database(self) -> Login:
        """Return the same login for a server that might not have the schema yet."""
        return replace(self, database=None)


def login(account: Account, config: Settings | None = None) -> Login:
    """Return the login of an account, as the settings have it."""
    config = config or settings()
    password = config.secret(f"{account}_password")
    return Login(config.mariadb_host, config.mariadb_port, account, password, config.database)


class BulkConnection(pymysql.connections.Connection):
    """A connection that can send COM_STMT_BULK_EXECUTE, which pymysql does not know.

    A client announces MariaDB's own capabilities in the last four bytes of the filler in its first packet. The server
    reads these bytes if the flag LONG_PASSWORD is missing, which every MySQL client sends ("Connecting" in MariaDB's
    manual).
    """

    _FILLER, _FILLED = slice(9, 32), bytes(19) + struct.pack("<I", 1 << 2)
    _greets = False

    def _request_authentication(self) -> None:
        self.client_flag &= ~CLIENT.LONG_PASSWORD
        self._greets = True
        super()._request_authentication()  # type: ignore[misc]  # pymysql's own, its version is pinned
        self._greets = False

    def write_packet(self, payload: bytes) -> None:
        """Send a packet; while the client connects, write the capabilities into the filler."""
        if self._greets and payload[self._FILLER] == bytes(len(self._FILLED)):
            payload = payload[: self._FILLER.start] + self._FILLED + payload[self._FILLER.stop :]
        super().write_packet(payload)


@contextmanager
def connect(who: Login, *, bulk: bool = False, answer_seconds: float | None = None) -> Iterator[Connection]:
    """Open a connection; commit at the end of the block, roll back on an error, close in any case.

    Args:
        who: account and address.
        bulk: whether the connection can send rows by COM_STMT_BULK_EXECUTE.
        answer_seconds: longest wait for an answer; by default there is no limit.
    """
    connection = (BulkConnection if bulk else pymysql.connect)(
        host=who.host,
        port=who.port,
        user=who.user,
        password=who.password,
        database=who.database,
        init_command="SET SESSION max_error_count = 65535" if bulk else None,  # the most warnings that a server keeps
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        read_timeout=answer_seconds,
        ssl_disabled=who.host in LOOPBACK,  # no network, so nobody can listen in; TLS takes longer than most queries
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
