"""The metrics endpoint requires a password, and its failures never stop the stream."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import httpx
import pytest

from foundation.settings import Settings
from services.ports import free_ports
from spark_apps.monitoring.metrics_server import PATH, PORTS, USER, serve_metrics

if TYPE_CHECKING:
    from collections.abc import Iterator

PASSWORD = "correct horse"  # noqa: S105  # of this test alone
PAGE = 'freshet_events_total{pipeline="sales"} 5\n'


def config(port: int, password: str = PASSWORD) -> Settings:
    """Return settings with a port and a password."""
    return Settings.model_validate({"metrics_port": port, "metrics_password": password})


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Return the address at which a server for this test answers."""
    (port,) = free_ports(1)
    with serve_metrics(config(port), lambda: PAGE):
        yield f"http://127.0.0.1:{port}"


def test_who_has_the_password_gets_the_page(address: str) -> None:
    """With the password, GET with or without parameters and HEAD return the page; any other path is not found."""
    for method, path, page in (("GET", PATH, PAGE), ("GET", f"{PATH}?name=x", PAGE), ("HEAD", PATH, "")):
        answer = httpx.request(method, address + path, auth=(USER, PASSWORD))
        assert (answer.status_code, answer.text) == (200, page)
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert answer.headers["Content-Length"] == str(len(PAGE))
    assert httpx.get(f"{address}/", auth=(USER, PASSWORD)).status_code == 404


@pytest.mark.parametrize("login", [None, (USER, ""), (USER, "wrong"), ("", PASSWORD), ("admin", PASSWORD), ("ü", "ß")])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE"])
@pytest.mark.parametrize("path", [PATH, "/", "/nowhere", "/metrics/../metrics"])
def test_nobody_else_gets_anything(address: str, login: tuple[str, str] | None, method: str, path: str) -> None:
    """Without the password, every path and every method is refused."""
    answer = httpx.request(method, address + path, auth=login)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == 'Basic realm="freshet"'
    assert answer.text == ""


def test_each_application_takes_the_next_free_port(capsys: pytest.CaptureFixture[str]) -> None:
    """A second application takes the next free port; both pages are served, and the log names each port."""
    (first,) = free_ports(1)
    with (
        serve_metrics(config(first), lambda: PAGE) as port,
        serve_metrics(config(first), lambda: "another page") as next_port,
    ):
        assert port == first
        assert next_port is not None
        assert first < next_port < first + PORTS
        for served, page in ((port, PAGE), (next_port, "another page")):
            assert httpx.get(f"http://127.0.0.1:{served}{PATH}", auth=(USER, PASSWORD)).text == page
    said = capsys.readouterr().out.splitlines()
    assert said == [f"metrics: served at http://127.0.0.1:{served}{PATH}" for served in (port, next_port)]


def test_without_a_free_port_is_one_line_and_the_work_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    """When no port from the setting on is free, one line states the setting, and the block runs without metrics."""
    with socket.socket() as listener:
        try:
            listener.bind(("127.0.0.1", 65535))
            listener.listen()
        except OSError:
            pass  # somebody else has it
        with serve_metrics(config(65535), lambda: PAGE) as port:
            assert port is None
    (line,) = capsys.readouterr().out.splitlines()
    assert "FRESHET_METRICS_PORT" in line
    assert "got 65535 to 65535, which are all taken" in line
    assert "The stream runs without them" in line


def test_without_a_password_nothing_is_served(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a password, or with an empty one, no page is served, and one line states the missing setting."""
    (port,) = free_ports(1)
    with serve_metrics(config(port, password=""), lambda: PAGE), pytest.raises(httpx.ConnectError):
        httpx.get(f"http://127.0.0.1:{port}{PATH}")
    (line,) = capsys.readouterr().out.splitlines()
    assert "FRESHET_METRICS_PASSWORD is not set" in line


def test_only_this_machine_is_listened_to(address: str) -> None:
    """The server listens on this machine's loopback address only."""
    port = int(address.rpartition(":")[2])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), timeout=5)
