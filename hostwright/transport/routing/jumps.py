"""Shared connections to jump hosts: for a hundred hosts behind a jump host, one login to the jump host is enough.

With separate logins, the jump host's sshd would drop logins above ``MaxStartups`` (10 at once by default).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import fabric

    from hostwright.transport.exchange import Deadline


@dataclass(slots=True, eq=False)
class Lease:
    """A shared connection to a jump host, open or being opened, with the number of its users."""

    key: Hashable
    opened: Future[fabric.Connection] = field(default_factory=Future)
    users: int = 0

    @property
    def connection(self) -> fabric.Connection:
        """The open connection to the jump host."""
        return self.opened.result()

    def usable(self) -> bool:
        """Whether the shared connection is alive or being opened."""
        return not self.opened.done() or (self.opened.exception() is None and self.connection.is_connected)


class Jumps:
    """The shared connections of one run to jump hosts. Thread-safe.

    The first user of a connection opens it, and the last user closes it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._leases: dict[Hashable, Lease] = {}

    def borrow(self, key: Hashable, connect: Callable[[], fabric.Connection], deadline: Deadline) -> Lease:
        """Return the lease of the shared connection for ``key``. ``connect`` opens the connection if needed.

        Call ``give_back`` once for each call. Raises the exception of ``connect``, even from another thread, so that a
        dead jump host is tried once. Raises ``TimeoutError`` after the deadline.
        """
        with self._lock:
            lease = self._leases.get(key)
            mine = lease is None or not lease.usable()
            if lease is None or mine:
                lease = self._leases[key] = Lease(key)
            lease.users += 1
        try:
            if mine:
                self._open(lease, connect)
            lease.opened.result(deadline.left_s())
        except BaseException:
            self.give_back(lease)
            raise
        return lease

    @staticmethod
    def _open(lease: Lease, connect: Callable[[], fabric.Connection]) -> None:
        try:
            lease.opened.set_result(connect())
        except BaseException as error:
            lease.opened.set_exception(error)
            raise

    def give_back(self, lease: Lease) -> None:
        """End one use of a lease. The last user's call closes the connection."""
        with self._lock:
            lease.users -= 1
            if lease.users:
                return
            if self._leases.get(lease.key) is lease:
                del self._leases[lease.key]
        if lease.opened.done() and lease.opened.exception() is None:
            lease.connection.client.close()
