"""Limits the connections that a server handles at once, in total and for each peer.

If all slots are taken, a new connection replaces the oldest connection of the peer with the most slots. A peer at its
own limit loses its own oldest connection. Peers that may fetch nothing have separate slots. A connection that has shown
a valid token no longer takes a slot.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field

#: prefix length of IPv6 networks that count as one peer
IPV6_NETWORK = 64

Peer = ipaddress.IPv4Address | ipaddress.IPv6Address


def peer_address(peer: str) -> Peer:
    """Parse the client's address ``peer``; an IPv4-mapped IPv6 address becomes an IPv4 address."""
    address = ipaddress.ip_address(peer.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address


def peer_name(peer: str) -> str:
    """Return the IPv4 address or IPv6 network of ``peer``, the key for counting the peer's connections."""
    address = peer_address(peer)
    return str(address if address.version == 4 else ipaddress.ip_network((address, IPV6_NETWORK), strict=False))


@dataclass(slots=True)
class Places:
    """Limits the connections with a slot to ``total`` at once, and to ``by_peer`` for one peer."""

    total: int
    by_peer: int
    #: connection that takes a slot → name of the peer; the oldest connection is first
    _taken: dict[socket.socket, str] = field(default_factory=dict)
    _admitted: set[socket.socket] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, connection: socket.socket, peer: str) -> None:
        """Give a slot to a new connection. If all slots are taken, first shut down an older connection."""
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
        """Free the slot of a connection with a valid token; the connection stays open."""
        with self._lock:
            if self._taken.pop(connection, None):
                self._admitted.add(connection)

    def leave(self, connection: socket.socket) -> None:
        """Free the slot of a connection that has ended."""
        with self._lock:
            self._taken.pop(connection, None)
            self._admitted.discard(connection)

    def clear(self) -> None:
        """Shut down all open connections, with or without a slot."""
        with self._lock:
            for connection in (*self._taken, *self._admitted):
                hang_up(connection)

    @property
    def taken(self) -> int:
        """Return the number of taken slots."""
        with self._lock:
            return len(self._taken)


def hang_up(connection: socket.socket) -> None:
    """Shut down a connection, if it has not ended."""
    with suppress(OSError):
        # SSLSocket.shutdown would drop the TLS keys first, and the connection's thread would then send plain text.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
