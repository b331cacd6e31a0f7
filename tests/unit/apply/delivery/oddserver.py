"""HTTP servers that answer as a test says, byte for byte; and one transfer by the real program of a host."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from hostwright.apply.delivery.looking import StoredFile
from hostwright.apply.delivery.pulling import Grant, HeldInput, Pulled, pull
from hostwright.stack.stack import Artifact
from tests.unit.apply.delivery.hosts import LoopHost

TOKEN = "t" * 32
Speaker = Callable[[bytes, socket.socket], None]  #: gets a request with its headers, and the connection


@dataclass
class OddServer:
    port: int
    requests: list[bytes] = field(default_factory=list)

    @property
    def grant(self) -> Grant:
        return Grant("127.0.0.1", self.port, TOKEN)

    @property
    def ranges(self) -> list[str]:
        """The range of each request; empty where it had none."""
        lines = [request.decode().split("\r\n") for request in self.requests]
        return [next((line for line in one if line.startswith("Range:")), "").removeprefix("Range: ") for one in lines]


@contextmanager
def odd_server(speak: Speaker) -> Iterator[OddServer]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    server = OddServer(listener.getsockname()[1])

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            request = b""
            while b"\r\n\r\n" not in request:
                piece = connection.recv(4096)
                if not piece:
                    return
                request += piece
            server.requests.append(request)
            speak(request, connection)

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def start_of(request: bytes) -> int:
    """Where the asked range begins; 0 without one."""
    for line in request.split(b"\r\n"):
        if line.startswith(b"Range: bytes="):
            return int(line.removeprefix(b"Range: bytes=").rstrip(b"-"))
    return 0


def answer(status: str, body: bytes, *headers: str, length: int | None = None) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def honest(content: bytes) -> Speaker:
    def speak(request: bytes, connection: socket.socket) -> None:
        start = start_of(request)
        total = len(content)
        if start:
            head = f"Content-Range: bytes {start}-{total - 1}/{total}"
            connection.sendall(answer("206 Partial Content", content[start:], head))
        else:
            connection.sendall(answer("200 OK", content))

    return speak


def saying(*pieces: bytes) -> Speaker:
    def speak(_request: bytes, connection: socket.socket) -> None:
        for piece in pieces:
            connection.sendall(piece)

    return speak


def pulled_from(
    server: OddServer | Grant,
    host: LoopHost,
    artifact: Artifact,
    path: Path,
    *,
    progress: Callable[[int], None] | None = None,
) -> Pulled:
    """One transfer, as a host makes it."""
    grant = server if isinstance(server, Grant) else server.grant
    item = StoredFile.of(artifact, path)
    told = progress or (lambda _done: None)
    with host.connect() as shell:
        shell.run(":", timeout_s=60, failure="no root")
        return pull(shell, item, grant, HeldInput(grant.token), progress=told, cache=host.cache)
