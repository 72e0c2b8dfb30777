"""A web server that keeps what is posted to it, for tests of messages."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def posted() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Run the server; give its address, and the list that the posted JSON objects are added to."""
    kept: list[dict[str, Any]] = []

    class Post(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            kept.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_words: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Post)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", kept
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
