"""Sessions to malicious or non-SSH servers: one error, and no more data is read than needed.

Cases: a packet of 4 GiB (paramiko 2626), a greeting of /dev/urandom (asyncssh 260), and similar ones.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import fabric
import pytest

from hostwright.common.errors import HostError, Unreachable
from hostwright.transport import connect
from tests.lab.sshd import Target, options

VERSION = b"SSH-2.0-OpenSSH_9.2\r\n"


@dataclass
class Liar:
    port: int
    sent: int = 0


@contextmanager
def liar(speak: Callable[[int], bytes]) -> Iterator[Liar]:
    """A server that sends ``speak(0)``, ``speak(1)``… until the client disconnects; 64 MiB at most."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = Liar(listener.getsockname()[1])

    def serve() -> None:
        with suppress(OSError):
            client, _ = listener.accept()
            with client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
                number = 0
                while server.sent < 64 * 2**20 and (data := speak(number)):
                    client.sendall(data)
                    server.sent += len(data)
                    number += 1
                client.recv(1)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.close()


GREETINGS: dict[str, Callable[[int], bytes]] = {
    "a line without an end": lambda _: b"x" * 8192,
    "lines without an end": lambda _: b"welcome\r\n" * 1000,
    "bytes that are no text": lambda _: b"\xff\xfe" * 4096,
    "a packet of 4 GiB": lambda number: VERSION + b"\xff\xff\xff\xff" if number == 0 else b"\xff" * 8192,
    "a packet of 1 GiB": lambda number: VERSION + b"\x40\x00\x00\x04" if number == 0 else b"\0" * 8192,
}


@pytest.mark.parametrize("speak", GREETINGS.values(), ids=GREETINGS)
def test_a_server_that_sends_without_end_before_the_login_is_left(speak: Callable[[int], bytes]) -> None:
    with liar(speak) as server:
        with pytest.raises(Unreachable) as caught:
            connect(Target(port=server.port), options())
        assert server.sent < 8 * 2**20
    assert caught.value.host == "gpu01"
    assert caught.value.sentence.isprintable()


@pytest.mark.parametrize(
    "words", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-1.5-old\r\n", b"\xff\xff\n", b"\0\0\0\0", b""]
)
def test_a_server_that_is_no_ssh_server_is_an_error_of_its_host(words: bytes) -> None:
    with liar(lambda number: words if number == 0 else b"") as server, pytest.raises(HostError) as caught:
        connect(Target(port=server.port), options(connect_timeout_s=2.0))
    assert caught.value.host == "gpu01"


def test_connections_share_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fabric modifies a connection's settings, so a connection that shared them would lack 'gateway'."""
    used: list[fabric.Config] = []

    def connection(*_: object, config: fabric.Config, **__: object) -> None:
        used.append(config)
        raise ConnectionResetError

    monkeypatch.setattr(fabric, "Connection", connection)
    for _ in range(2):
        with liar(lambda _: b"") as server, pytest.raises(HostError):
            connect(Target(port=server.port), options())
    first, second = used
    assert first is not second
