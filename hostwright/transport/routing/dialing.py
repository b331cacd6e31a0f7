"""Opens sockets to servers, directly or with a ``ProxyCommand``, with a deadline also for name resolution."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from math import ceil
from typing import Any

from hostwright.transport.exchange import Deadline

_QUICKACK = getattr(socket, "TCP_QUICKACK", 0)  #: socket option to acknowledge data at once; 0 except on Linux
#: macOS's socket option TCP_RXT_CONNDROPTIME, the seconds to retransmit unacknowledged data
_RXT_CONNDROPTIME = 0x80
_Address = tuple[int, int, int, str, Any]


class _PromptSocket(socket.socket):
    """A socket that acknowledges received data at once.

    sshd's first reply waits for an acknowledgement, and the kernel would delay the acknowledgement by 40 ms.
    """

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        data = super().recv(size, flags)
        self.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
        return data


def dial(address: str, port: int, deadline: Deadline, keepalive_s: float) -> socket.socket:
    """Return a TCP connection to the first address of the name ``address`` that accepts a connection.

    Each attempt may take an equal share of the time until ``deadline``. Raises the last ``OSError`` if every address
    fails.
    """
    addresses = _resolve(address, port, deadline)
    failure: OSError = TimeoutError("the connection exceeded its time limit")
    for position, (family, kind, protocol, _, peer) in enumerate(addresses):
        sock = (_PromptSocket if _QUICKACK else socket.socket)(family, kind, protocol)
        try:
            sock.settimeout(max(deadline.left_s() / (len(addresses) - position), 0.001))
            sock.connect(peer)
        except OSError as error:
            sock.close()
            failure = error
        else:
            _tune(sock, keepalive_s)
            return sock
    raise failure


def _resolve(address: str, port: int, deadline: Deadline) -> Sequence[_Address]:
    """Call ``getaddrinfo`` in a thread, because the function has no timeout."""
    try:
        return socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (socket.gaierror, UnicodeError):  # An empty or too long label in a name raises UnicodeError.
        pass
    answer: list[Sequence[_Address] | OSError] = []

    def ask() -> None:
        try:
            answer.append(socket.getaddrinfo(address, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            answer.append(error if isinstance(error, OSError) else socket.gaierror(str(error)))

    thread = threading.Thread(target=ask, name=f"resolve-{address}", daemon=True)
    thread.start()
    thread.join(deadline.left_s())
    if not answer:
        raise TimeoutError("the name servers do not respond")
    if isinstance(answer[0], OSError):
        raise answer[0]
    return answer[0]


def _tune(sock: socket.socket, keepalive_s: float) -> None:
    """Disable Nagle's algorithm (a command then starts in 2 ms instead of 44), and detect a dead network."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    silent_s = keepalive_s * 3
    user_timeout = getattr(socket, "TCP_USER_TIMEOUT", None)
    if user_timeout is not None:
        sock.setsockopt(socket.IPPROTO_TCP, user_timeout, int(silent_s * 1000))
    elif sys.platform == "darwin":
        with suppress(OSError):  # Without this option, a dead network is only detected later.
            sock.setsockopt(socket.IPPROTO_TCP, _RXT_CONNDROPTIME, ceil(silent_s))


def dial_command(command: str) -> socket.socket:
    """Start a ``ProxyCommand`` as ``ssh`` does, and return a socket connected to it."""
    near, far = socket.socketpair()
    with far:
        process = subprocess.Popen(
            ["/bin/sh", "-c", "trap '' INT; exec " + command],
            stdin=far.fileno(),
            stdout=far.fileno(),
            stderr=subprocess.DEVNULL,
        )
    threading.Thread(target=process.wait, name="proxy-command", daemon=True).start()
    return near
