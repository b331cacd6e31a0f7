"""What tests listen with: after its end nobody answers in its place, whatever gets its port or its descriptor."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import paramiko
import pytest

from tests.lab.liars.sshliar import Liar
from tests.lab.listening import Listener
from tests.unit.transport.identity.test_trust import Server

SERVERS: dict[str, Callable[[], Listener | Liar | Server]] = {
    "a listener": lambda: Listener(socket.socket.close),
    "a liar": lambda: Liar("not a word"),
    "a server that shows keys": lambda: Server(paramiko.ECDSAKey.generate()),
}


@pytest.mark.parametrize("make", SERVERS.values(), ids=SERVERS)
def test_a_server_that_was_closed_answers_nobody(make: Callable[[], Listener | Liar | Server]) -> None:
    before = set(threading.enumerate())
    server = make()
    with socket.create_connection(("127.0.0.1", server.port), timeout=20):
        server.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), timeout=20)
    listening = [thread for thread in threading.enumerate() if thread not in before and "listener" in thread.name]
    assert not listening


def test_each_connection_is_met_until_it_is_closed() -> None:
    met: list[bytes] = []

    def meet(connection: socket.socket) -> None:
        with connection:
            met.append(connection.recv(1))

    listener = Listener(meet)
    for word in (b"a", b"b"):
        with socket.create_connection(("127.0.0.1", listener.port), timeout=20) as asking:
            asking.sendall(word)
            assert asking.recv(1) == b"", "it waits until it was met"
    listener.close()
    listener.close()
    assert met == [b"a", b"b"]
