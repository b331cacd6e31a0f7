"""The places of a seed server: how many connections are answered at once, shared out by who is at the other end.

Whoever is slow loses to whoever comes: where all places are taken, the peer that holds the most of them gives up its
oldest one, and a peer with all that it may have gives up its own. Those who may fetch something and strangers have
places of their own, so that strangers take none of the first. Who has shown a token waits for nothing any more, and
needs no place.
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
    _admitted: set[socket.socket] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, connection: socket.socket, peer: str) -> None:
        """Give a connection a place, if need be the oldest one of a peer with the most of them."""
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
        """A connection has shown that it may fetch: it leaves its place, and goes on."""
        with self._lock:
            if self._taken.pop(connection, None):
                self._admitted.add(connection)

    def leave(self, connection: socket.socket) -> None:
        """A connection has ended."""
        with self._lock:
            self._taken.pop(connection, None)
            self._admitted.discard(connection)

    def clear(self) -> None:
        """End all connections in the middle."""
        with self._lock:
            for connection in (*self._taken, *self._admitted):
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
