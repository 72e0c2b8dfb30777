"""The endpoint that Prometheus scrapes, on 127.0.0.1; every request needs the password.

Each application takes the first port from FRESHET_METRICS_PORT on that is free, so several pipelines need no settings.
"""

from __future__ import annotations

import base64
import hmac
import threading
from contextlib import contextmanager
from errno import EADDRINUSE
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from foundation.errors import SettingsError
from spark_apps.monitoring.metrics_page import CONTENT_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from foundation.settings import Settings

USER = "prometheus"
PATH = "/metrics"
PATIENCE_SECONDS = 5
PORTS = 100  # how many are tried
LARGEST_PORT = 65535


@contextmanager
def serve_metrics(config: Settings, page: Callable[[], str]) -> Iterator[int | None]:
    """Serve the page while the block runs, and yield the port.

    If that is impossible, print one line and run the block without it: then there is no port.
    """
    try:
        server = _listen(config, page)
    except (SettingsError, OSError) as obstacle:
        print(f"metrics: not served: {str(obstacle).rstrip('.')}. The stream runs without them.", flush=True)
        yield None
        return
    port = server.server_address[1]
    print(f"metrics: served at http://127.0.0.1:{port}{PATH}", flush=True)
    with server:
        threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
        try:
            yield port
        finally:
            server.shutdown()


def _listen(config: Settings, page: Callable[[], str]) -> ThreadingHTTPServer:
    login = f"{USER}:{config.secret('metrics_password')}".encode()
    expected = b"Basic " + base64.b64encode(login)

    class Handler(BaseHTTPRequestHandler):
        timeout = PATIENCE_SECONDS  # closes a connection that sends nothing

        def parse_request(self) -> bool:
            """Refuse every request without the password, whatever it asks for."""
            if not super().parse_request():
                return False
            given = self.headers.get("Authorization", "").encode("utf-8", "replace")
            if hmac.compare_digest(given, expected):
                return True
            self.send_response(HTTPStatus.UNAUTHORIZED)
            self.send_header("WWW-Authenticate", 'Basic realm="freshet"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return False

        def do_GET(self) -> None:  # the name that http.server looks for
            """Answer with the page; the query string is ignored."""
            if urlsplit(self.path).path != PATH:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            body = page().encode()
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815  # http.server's name

        def version_string(self) -> str:
            return "freshet"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # http.server's interface
            """Log nothing: there is a scrape every few seconds."""

    server = _on_a_free_port(config.metrics_port, Handler)
    server.daemon_threads = True
    return server


def _on_a_free_port(first: int, handler: type[BaseHTTPRequestHandler]) -> ThreadingHTTPServer:
    last = min(first + PORTS - 1, LARGEST_PORT)
    for port in range(first, last + 1):
        try:
            return ThreadingHTTPServer(("127.0.0.1", port), handler)
        except OSError as error:
            if error.errno != EADDRINUSE:
                raise
    raise SettingsError(
        f"FRESHET_METRICS_PORT: one of the ports from it on must be free, got {first} to {last}, which are all taken",
        "Set it to another one.",
    )
