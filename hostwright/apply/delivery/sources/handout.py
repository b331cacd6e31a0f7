"""Distributes the files of one run: ``FileSources`` chooses the source of each file, and HTTP servers send the files.

A transfer needs a ``Ticket`` with the name of the source, and a ``Grant`` of this source. A host that ``FileSources``
selects as a source runs its server over the connection from this machine.
"""

from __future__ import annotations

import ipaddress
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from hostwright.apply.delivery.pulling import Grant
from hostwright.apply.delivery.sources.servers import FileServer, PeerServer
from hostwright.apply.delivery.sources.settings import FileSettings
from hostwright.apply.delivery.sources.sources import PATIENCE_S, FileSources, Peer, Ticket
from hostwright.apply.events import Note
from hostwright.common.errors import HostwrightError

if TYPE_CHECKING:
    from hostwright.apply.delivery.looking import StoredFile
    from hostwright.apply.events import Emit
    from hostwright.apply.host.connection import HostConnection
    from hostwright.transport.exchange import Ends

KEPT = 8  #: maximum number of finished hosts whose connections stay open to serve files to others (our choice)
UNREACHED = 3  #: number of hosts that cannot reach an address before all hosts stop using it


@dataclass(eq=False)
class _Entered:
    connection: HostConnection
    files: Sequence[str]
    end: Callable[[], None]
    server: PeerServer | None = None
    grant: Grant | None = None  #: permission to fetch files from this host; ``None`` while the host serves no files
    kept: bool = False
    down: bool = False
    cannot: bool = False  #: whether the host cannot serve files in this run


@dataclass(eq=False)
class _Reach:
    reached: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)


class Handout:
    """Distributes the files of a run to the hosts that fetch files by HTTP. A context manager; thread-safe.

    ``settings`` has the settings of these hosts. All other hosts receive files over SSH or from vendors.
    """

    def __init__(
        self,
        run: str,
        settings: Mapping[str, FileSettings],
        emit: Emit = lambda _: None,
        *,
        patience_s: float = PATIENCE_S,
    ):
        self._run, self._settings, self._emit, self._patience_s = run, dict(settings), emit, patience_s
        self.server = FileServer()
        self.sources = FileSources({name: Peer(one.group, one.uploads) for name, one in settings.items()}, self._begin)
        self._entered: dict[str, _Entered] = {}
        self._reach: dict[str, _Reach] = {}
        self._lock = threading.Lock()
        self._stopped = False
        self._told: frozenset[str] = frozenset()  #: reported errors of this machine's HTTP server for files

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop all file servers, on this machine and on the hosts."""
        self.stop()
        self.server.close()
        with self._lock:
            entered = list(self._entered.values())
        for member in entered:
            self._close(member)

    def takes(self, host: str) -> bool:
        """Return whether ``host`` takes part in the distribution."""
        return host in self._settings

    def enter(self, host: str, connection: HostConnection, files: Sequence[str], end: Callable[[], None]) -> None:
        """Add a host to the distribution.

        ``files`` are the paths of the files on the host that other hosts may fetch. ``end`` is called when the
        distribution stops.
        """
        with self._lock:
            before = self._entered.get(host)
            self._entered[host] = _Entered(connection, files, end)
            stopped = self._stopped
        if before:
            before.end()
            self._close(before)
        if self.takes(host):
            self.sources.join(host)
        if stopped:
            end()

    def stop(self) -> None:
        """Assign no further sources, wake the hosts that wait for a source, and end the current transfers."""
        with self._lock:
            self._stopped = True
            entered = list(self._entered.values())
        self.sources.stop()
        for member in entered:
            member.end()

    def await_source(self, ticket: Ticket) -> None:
        """Wait until ``ticket`` has a source: another host or, after ``patience_s``, also this machine."""
        if not ticket.settled.wait(self._patience_s):
            self.sources.hurry(ticket)
            ticket.settled.wait()

    def grant(self, host: str, item: StoredFile, ends: Ends, seen: str) -> Grant | None:
        """Return permission for ``host`` to fetch the file ``item`` from this machine.

        ``None`` if the host probably cannot connect to this machine. ``ends`` are the endpoints of the host's SSH
        connection; ``seen`` is this machine's address as the host reports it, or empty.
        """
        settings = self._settings[host]
        address = settings.address or ends.local
        if not address or (not settings.address and seen not in ("", address)):
            return None
        with self._lock:
            reach = self._reach.setdefault(address, _Reach())
            if host in reach.failed or (not reach.reached and len(reach.failed) >= UNREACHED):
                return None
        try:
            bound = not settings.address and _comes_as_it_is_reached(ends)
            return self.server.grant(item, address, settings.ports, ends.remote, bound=bound)
        except HostwrightError as error:
            self._tell(str(error))
            return None

    def reached(self, host: str, grant: Grant, *, well: bool) -> None:
        """Record whether ``host`` could connect to this machine at the address of ``grant``. ``well`` means success."""
        with self._lock:
            reach = self._reach.setdefault(grant.address, _Reach())
            (reach.reached if well else reach.failed).add(host)

    def _tell(self, trouble: str) -> None:
        """Report ``trouble``, an error of this machine's file server, unless the same text was reported before."""
        with self._lock:
            told, self._told = trouble in self._told, self._told | {trouble}
        if not (told or self._stopped):
            self._emit(Note("", f"{trouble}; files are sent over SSH instead"))

    def peer_grant(self, peer: str) -> Grant | None:
        """Return permission to fetch files from the host ``peer``. ``None`` if that host serves no files."""
        with self._lock:
            member = self._entered.get(peer)
            return member.grant if member else None

    def pause(self, host: str) -> None:
        """Stop the file server on ``host`` before a reboot, until ``resume``."""
        with self._lock:
            member = self._entered.get(host)
            if member is None or not self.takes(host):
                return
            member.down = True
        self.sources.unable(host)
        if member.server:
            member.server.stop()

    def resume(self, host: str) -> None:
        """Allow ``host`` to serve files again after its reboot."""
        with self._lock:
            member = self._entered.get(host)
            if member is None or not member.down:
                return
            member.down = False
        if not member.cannot:
            self.sources.able(host)

    def cut(self, host: str) -> None:
        """End all transfers to ``host``, without waiting for their end."""
        with self._lock:
            member = self._entered.get(host)
        if member:
            threading.Thread(target=member.end, name="cut-files", daemon=True).start()

    def leave(self, host: str, connection: HostConnection) -> bool:
        """Remove ``host`` from the distribution when the run's work on the host is over.

        Return whether ``connection`` stays open, because other hosts still fetch files over this connection.
        """
        with self._lock:
            member = self._entered.get(host)
            kept = sum(other.kept for other in self._entered.values())
        if member is None or member.connection is not connection:
            return False  # Only the newer connection of the host may remove the host.
        if not self.takes(host):
            with self._lock:
                self._entered.pop(host, None)
            return False
        if not self._stopped and kept < KEPT and member.grant and self.sources.needed(host):
            member.kept = True
            self.tidy()
            return True
        self._forget(host, member)
        return False

    def tidy(self) -> None:
        """Close each connection that was kept open for other hosts and that no other host uses any more."""
        with self._lock:
            kept = [(host, member) for host, member in self._entered.items() if member.kept]
        for host, member in kept:
            if not self.sources.needed(host):
                self._forget(host, member)

    def _forget(self, host: str, member: _Entered) -> None:
        with self._lock:
            self._entered.pop(host, None)
        self.sources.leave(host)
        self._close(member)

    def _close(self, member: _Entered) -> None:
        if member.server:
            member.server.stop()
        if member.kept:
            member.connection.close()

    def _begin(self, host: str) -> None:
        threading.Thread(target=self._serve, args=(host,), name=f"serve-{host}", daemon=True).start()

    def _serve(self, host: str) -> None:
        with self._lock:
            member = self._entered.get(host)
            if member is None or member.down or self._stopped:
                return
            name = f"hostwright-files-{self._run}-{secrets.token_hex(2)}"
            server = member.server = PeerServer(host, member.files, self._settings[host], name)

        def begun(grant: Grant) -> None:
            member.grant = grant
            if not member.down:
                self.sources.serving(host)

        with suppress(HostwrightError):
            server.run(member.connection.shell, begun)
        member.cannot, member.server = member.grant is None, None
        with self._lock:
            current = self._entered.get(host) is member
        if current:
            self.sources.unable(host)
        member.grant = None
        if current and not (member.cannot or member.down):
            # The file server on the host ended early, and may be started again.
            self.sources.able(host)


def _comes_as_it_is_reached(ends: Ends) -> bool:
    """Return whether a host's own connections come from the address at which this machine reaches the host.

    Return ``False`` over a jump host, and on the loopback interface, where a program can use any address.
    """
    return bool(ends.local and ends.remote) and not ipaddress.ip_address(ends.remote).is_loopback
