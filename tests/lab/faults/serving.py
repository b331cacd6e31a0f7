"""A web server that sends a vendor's files damaged a few times, like a bad mirror or a middlebox."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal

How = Literal["cut", "short", "flip"]


@dataclass
class Damaging:
    """Files by name, and the damage of the first ``times`` responses.

    ``cut`` closes the connection half-way, ``short`` announces half of the file as the whole, ``flip`` inverts a byte.
    """

    files: dict[str, Path]
    how: How
    times: int
    share: float  #: position in the file, as a share of its size
    damaged: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def takes(self) -> bool:
        """Return whether this response is damaged, and count it."""
        with self.lock:
            taken = self.damaged < self.times
            self.damaged += taken
            return taken


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    damaging: Damaging

    def do_GET(self) -> None:
        path = self.damaging.files.get(self.path.lstrip("/"))
        if path is None:
            self.send_error(404)
            return
        data = path.read_bytes()
        wanted = self.headers.get("Range", "")
        begin = int(wanted.removeprefix("bytes=").partition("-")[0]) if wanted.startswith("bytes=") else 0
        if begin >= len(data) and begin:
            self.send_error(416)
            return
        body, announced = self._body(data[begin:])
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(announced))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = len(body) != announced or self.close_connection

    def _body(self, data: bytes) -> tuple[bytes, int]:
        """Return the bytes to send, and the announced size."""
        if not self.damaging.takes():
            return data, len(data)
        place = min(int(len(data) * self.damaging.share), len(data) - 1)
        if self.damaging.how == "flip":
            return data[:place] + bytes((data[place] ^ 0xFF,)) + data[place + 1 :], len(data)
        return data[:place], len(data) if self.damaging.how == "cut" else place

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def serving(damaging: Damaging, address: str) -> Iterator[str]:
    """Serve the files on a free port of an address of this machine; yields their base URL."""
    handler = type("Handler", (_Handler,), {"damaging": damaging})
    server = ThreadingHTTPServer((address, 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{address}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
