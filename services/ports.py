"""Is every port that the services are to listen on free, and theirs alone?"""

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


def check_ports(chosen: Settings) -> None:
    """Raise UnfitError when two services are to have one port, or another program listens where a service is to."""
    ports = {PREFIX + name.upper(): getattr(chosen, name) for name in PORTS}
    for variable, port in ports.items():
        namesake = next((other for other, its in ports.items() if other != variable and its == port), None)
        if namesake is None and is_free(port):
            continue
        better = next(
            each
            for each in chain(range(port + 1, LAST), range(FIRST, port))
            if each not in ports.values() and is_free(each)
        )
        if namesake:
            raise UnfitError(
                f"{variable} and {namesake} are both {port}", f"Give each its own: {variable}={better} make demo"
            )
        raise UnfitError(
            f"port {port} ({variable}) is taken by {owner_of(port)}",
            f"Stop that program, or choose another port: {variable}={better} make demo",
        )


def is_free(port: int) -> bool:
    """Tell whether a service could listen there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_ports(number: int) -> list[int]:
    """Return ports that nobody listens on, all different."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def owner_of(port: int) -> str:
    """Name the program that listens on a port, as far as the kernel lets us see."""
    with suppress(psutil.Error):  # it has just ended
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,) and connection.pid:
                return f"{psutil.Process(connection.pid).name()} (process {connection.pid})"
    return "another program"
