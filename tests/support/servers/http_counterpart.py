"""A small HTTP server of a test's own: a function turns the JSON of each request into the answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[str, Any], Any]
"""A function that makes the answer from the path and the JSON of a request: JSON, bytes that are sent unchanged, or a status."""


class Counterpart:
    """The server's URL and the requests that it got: (path, JSON, headers)."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[tuple[str, Any, dict[str, str]]] = []


@contextmanager
def answering(answer: Answer) -> Iterator[Counterpart]:
    """Serve on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found.asked.append((self.path, body, dict(self.headers)))
            value = answer(self.path, body)
            data = value if isinstance(value, bytes) else b"" if isinstance(value, int) else json.dumps(value).encode()
            self.send_response(value if isinstance(value, int) else 200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Write no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found = Counterpart(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
