"""The places of a seed server: how many connections are answered at once, shared out by who is at the other end.

Whoever is slow loses to whoever comes: where all places are taken, the peer that holds the most of them gives up its
oldest one. Those who may fetch a seed and strangers have places of their own, so that strangers take none of the first.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field

IPV6_NETWORK = 64  #: bits: one machine has all addresses of such a network

Peer = ipaddress.IPv4Address | ipaddress.IPv6Address


def peer_address(peer: str) -> Peer:
    """A peer's address; an IPv4 address that came in over an IPv6 socket is one."""
    address = ipaddress.ip_address(peer.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address


def peer_name(peer: str) -> str:
    """What peers are counted and told apart by: an IPv4 address, or an IPv6 network."""
    address = peer_address(peer)
    return str(address if address.version == 4 else ipaddress.ip_network((address, IPV6_NETWORK), strict=False))


@dataclass(slots=True)
class Places:
    """``total`` connections at once, of which one peer may have ``by_peer``."""

    total: int
    by_peer: int
    _taken: dict[socket.socket, str] = field(default_factory=dict)  #: in the order in which they came
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, connection: socket.socket, peer: str) -> bool:
        """Give a connection a place, if need be that of a peer with more of them; whether there is one for it."""
        name = peer_name(peer)
        with self._lock:
            held = list(self._taken.values())
            own = held.count(name)
            if own >= self.by_peer:
                return False
            if len(held) >= self.total:
                most = max(map(held.count, set(held)))
                if own >= most:
                    return False
                oldest = next(other for other, holder in self._taken.items() if held.count(holder) == most)
                del self._taken[oldest]
                hang_up(oldest)
            self._taken[connection] = name
            return True

    def leave(self, connection: socket.socket) -> None:
        """A connection has ended."""
        with self._lock:
            self._taken.pop(connection, None)

    def clear(self) -> None:
        """End all connections in the middle."""
        with self._lock:
            for connection in self._taken:
                hang_up(connection)

    @property
    def taken(self) -> int:
        """How many places are taken."""
        with self._lock:
            return len(self._taken)


def hang_up(connection: socket.socket) -> None:
    """End a connection in the middle; one that has ended is left alone."""
    with suppress(OSError):
        # The socket's own: that of TLS first forgets its keys, and what its thread sends then would be in the clear.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
