"""Check that every port of the services is free, and that no two services share one."""

from __future__ import annotations

import socket
from contextlib import ExitStack, suppress
from itertools import chain
from typing import TYPE_CHECKING

import psutil

from foundation.errors import UnfitError
from foundation.settings import PREFIX

if TYPE_CHECKING:
    from foundation.settings import Settings

PORTS = ("kafka_port", "kafka_controller_port", "mariadb_port", "airflow_port", "metrics_port")
FIRST, LAST = 1024, 65_535


def check_ports(config: Settings) -> None:
    """Raise UnfitError when two services have the same port, or another program listens on one."""
    ports = {PREFIX + name.upper(): getattr(config, name) for name in PORTS}
    for variable, port in ports.items():
        twin = next((other for other, its in ports.items() if other != variable and its == port), None)
        if twin is None and is_free(port):
            continue
        free = next(
            each
            for each in chain(range(port + 1, LAST), range(FIRST, port))
            if each not in ports.values() and is_free(each)
        )
        if twin:
            raise UnfitError(
                f"{variable} and {twin} are both {port}", f"Give each its own port: {variable}={free} make demo"
            )
        raise UnfitError(
            f"port {port} ({variable}) is in use by {owner_of(port)}",
            f"Stop that program, or use another port: {variable}={free} make demo",
        )


def is_free(port: int) -> bool:
    """Return whether a service can listen on this port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_ports(number: int) -> list[int]:
    """Return different ports on which nobody listens."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def owner_of(port: int) -> str:
    """Return the name of the program that listens on a port; the kernel hides the programs of other users."""
    with suppress(psutil.Error):  # the program can end during the search
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,) and connection.pid:
                return f"{psutil.Process(connection.pid).name()} (process {connection.pid})"
    return "another program"
