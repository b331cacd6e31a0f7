"""Limits the connections that a server handles at once, in total and for each peer.

A new connection replaces an old one: if all places are taken, the peer with the most places loses its oldest
connection. A peer at its own limit loses its own oldest connection. Expected peers and strangers have separate places,
so strangers take none from expected peers. A connection that has shown a token needs no place.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field

IPV6_NETWORK = 64  #: bits of a prefix; one machine may use all addresses of such a network

Peer = ipaddress.IPv4Address | ipaddress.IPv6Address


def peer_address(peer: str) -> Peer:
    """The address of a peer; an IPv4-mapped IPv6 address becomes IPv4."""
    address = ipaddress.ip_address(peer.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address


def peer_name(peer: str) -> str:
    """The key under which peers are counted: an IPv4 address, or an IPv6 network."""
    address = peer_address(peer)
    return str(address if address.version == 4 else ipaddress.ip_network((address, IPV6_NETWORK), strict=False))


@dataclass(slots=True)
class Places:
    """``total`` connections at once, at most ``by_peer`` of one peer."""

    total: int
    by_peer: int
    _taken: dict[socket.socket, str] = field(default_factory=dict)  #: connection → peer name, oldest first
    _admitted: set[socket.socket] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, connection: socket.socket, peer: str) -> None:
        """Give a connection a place. If necessary, end the oldest connection of the peer with the most places."""
        name = peer_name(peer)
        with self._lock:
            held = [*self._taken.values(), name]
            if held.count(name) > self.by_peer:
                self._end_oldest({name})
            elif len(held) > self.total:
                most = max(map(held.count, held))
                self._end_oldest({holder for holder in held if held.count(holder) == most})
            self._taken[connection] = name

    def _end_oldest(self, names: set[str]) -> None:
        oldest = next(other for other, holder in self._taken.items() if holder in names)
        del self._taken[oldest]
        hang_up(oldest)

    def admit(self, connection: socket.socket) -> None:
        """Free the place of a connection that has shown a token, and keep the connection."""
        with self._lock:
            if self._taken.pop(connection, None):
                self._admitted.add(connection)

    def leave(self, connection: socket.socket) -> None:
        """Free the place of a connection that has ended."""
        with self._lock:
            self._taken.pop(connection, None)
            self._admitted.discard(connection)

    def clear(self) -> None:
        """Shut down all connections."""
        with self._lock:
            for connection in (*self._taken, *self._admitted):
                hang_up(connection)

    @property
    def taken(self) -> int:
        """Number of places taken."""
        with self._lock:
            return len(self._taken)


def hang_up(connection: socket.socket) -> None:
    """Shut down a connection; do nothing if it has ended."""
    with suppress(OSError):
        # Not SSLSocket.shutdown: it drops the TLS keys first, so its thread would send plain text.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
