"""Time until a connection to a silent network ends, on each system of a controller."""

from __future__ import annotations

import socket
import sys

import pytest

from hostwright.transport.routing import dialing


class Options:
    """A socket that records its options, or rejects some of them."""

    def __init__(self, refused: int = -1):
        self.told: dict[int, int] = {}
        self._refused = refused

    def setsockopt(self, level: int, option: int, value: int) -> None:
        if option == self._refused:
            raise OSError(42, "Protocol not available")
        self.told[option] = value


@pytest.mark.skipif(sys.platform != "linux", reason="the option of Linux")
def test_silent_connection_ends_after_three_unanswered_keepalives() -> None:
    with socket.socket() as sock:
        dialing._tune(sock, 15.0)
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 45_000


@pytest.mark.parametrize("refused", [-1, 0x80])
def test_macos_does_as_far_as_it_lets_itself_be_told(refused: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "TCP_USER_TIMEOUT", raising=False)
    monkeypatch.setattr(sys, "platform", "darwin")
    sock = Options(refused)
    dialing._tune(sock, 1.5)  # type: ignore[arg-type]
    assert sock.told == {socket.TCP_NODELAY: 1} | ({} if refused == 0x80 else {0x80: 5})
