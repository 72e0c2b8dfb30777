"""A port that a service cannot use is reported with its setting, the reason and a free port."""

from __future__ import annotations

import os
import re
import socket
from typing import TYPE_CHECKING

import pytest

from foundation.errors import UnfitError
from foundation.settings import Settings
from services.ports import PORTS, check_ports, is_free

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def taken() -> Iterator[int]:
    """Listen on a port whose next five ports are free, and return it."""
    while True:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            port: int = listener.getsockname()[1]
            if all(is_free(port + step) for step in range(1, 6)):
                yield port
                return


def with_ports(*ports: int) -> Settings:
    """Return settings with these ports, in the order of PORTS."""
    return Settings(**dict(zip(PORTS, ports, strict=True)))  # type: ignore[arg-type]


def test_different_free_ports_pass(taken: int) -> None:
    """Different free ports raise no error."""
    check_ports(with_ports(taken + 1, taken + 2, taken + 3, taken + 4, taken + 5))


def test_a_port_in_use_is_named_with_its_program_and_a_free_port(taken: int) -> None:
    """The error for a port in use has its program and the next free port that no other service uses."""
    with pytest.raises(UnfitError) as caught:
        check_ports(with_ports(taken, taken + 1, taken + 3, taken + 4, taken + 5))
    message = str(caught.value)
    assert re.search(rf"port {taken} \(FRESHET_KAFKA_PORT\) is in use by \S.* \(process {os.getpid()}\)", message)
    assert message.endswith(f"FRESHET_KAFKA_PORT={taken + 2} make demo")


def test_two_services_on_one_port_are_named_with_a_free_port(taken: int) -> None:
    """The error for two services on one port has both settings and a free port."""
    with pytest.raises(UnfitError) as caught:
        check_ports(with_ports(taken + 1, taken + 1, taken + 2, taken + 4, taken + 5))
    message = str(caught.value)
    assert f"FRESHET_KAFKA_PORT and FRESHET_KAFKA_CONTROLLER_PORT are both {taken + 1}." in message
    assert message.endswith(f"FRESHET_KAFKA_PORT={taken + 3} make demo")
