"""Opens a session in four steps under one deadline: route, socket, host key, login."""

from __future__ import annotations

import errno
import functools
import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import fabric
import paramiko
from paramiko.ssh_exception import IncompatiblePeer

from hostwright.common.errors import HostError, ProtocolError, Unreachable
from hostwright.common.userpaths import expanded
from hostwright.transport.exchange import Allowance, Deadline, Ends, Target
from hostwright.transport.identity.hostkeys import HostKeyMismatch
from hostwright.transport.identity.negotiating import make_transport, wanted
from hostwright.transport.identity.policy import HostKeyCheck
from hostwright.transport.login.auth import Login
from hostwright.transport.options import Options
from hostwright.transport.routing import route
from hostwright.transport.routing.dialing import dial, dial_command
from hostwright.transport.routing.jumps import Lease
from hostwright.transport.routing.sshconfig import Endpoint
from hostwright.transport.session import SshSession

ONLINE = "is this machine online?"
_IS_IT_ON = "is it powered on, is its address right"
_CURES = {
    errno.ENETUNREACH: ONLINE,
    errno.ENETDOWN: ONLINE,
    errno.EADDRNOTAVAIL: ONLINE,
    errno.EHOSTUNREACH: f"{_IS_IT_ON}?",
}
#: suggested fix in errors for a host name that cannot be resolved
_OF_HOST = "is ansible_host right in the inventory?"
_NO_ADDRESS_ONLINE = "is this machine online, and does the inventory set the host's address (ansible_host)?"
_NO_ADDRESS = "set its address in the inventory (ansible_host), or make the name known to this machine"
_OF_JUMP = "is it right in the inventory (ansible_ssh_common_args) or in ssh_config?"
#: exceptions before the login that the network or the server may cause
FAILURES = (OSError, EOFError, paramiko.SSHException)


# Without a handler, paramiko prints a traceback for each failure.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


def open_session(target: Target, options: Options, allowance: Allowance | None = None) -> SshSession:
    """Open an SSH session (see ``hostwright.transport.connect``)."""
    return Opening(target, options, allowance).session()


class Opening:
    """One attempt to connect to a host, with a time limit from the creation of this object.

    Raises ``Unreachable`` for an invalid configuration.
    """

    def __init__(self, target: Target, options: Options, allowance: Allowance | None = None):
        self.allowance = allowance or Allowance()
        self._host = target
        self._options = options
        self.endpoint = route.endpoint_of(target, options)
        self._chain = route.jumps_of(target, self.endpoint, options)
        timeout_s = target.connect_timeout or self.endpoint.connect_timeout_s or options.connect_timeout_s
        self.deadline = Deadline(timeout_s)

    def session(self) -> SshSession:
        """Connect to the jump hosts, then to the host, and return the session."""
        with self.way() as (via, leases):
            connection = self._connect(self.endpoint, via, jump=False)
            kept = leases.pop_all()
        session = SshSession(self._host, str(self.endpoint), connection, kept.close, self.allowance)
        session.ends = Ends.of(connection.transport.sock, self.endpoint.address)
        return session

    @contextmanager
    def way(self) -> Iterator[tuple[fabric.Connection | None, ExitStack]]:
        """Yield the connection to the last jump host, and an ``ExitStack`` that releases all jump hosts.

        The connection is ``None`` if the host is reached directly.
        """
        if self.allowance.fault:
            raise ProtocolError(self._host.name, f"{self.allowance.fault} ({self.endpoint})")
        with ExitStack() as leases:
            leases.enter_context(self.allowance.connection())
            lease: Lease | None = None
            for jump in self._chain:
                lease = self._borrow(jump, lease)
                leases.callback(self._options.shared.jumps.give_back, lease)
            yield lease.connection if lease else None, leases

    def _borrow(self, jump: Endpoint, before: Lease | None) -> Lease:
        try:
            return self._options.shared.jumps.borrow(
                (jump, before.key if before else None),
                lambda: self._connect(jump, before.connection if before else None, jump=True),
                self.deadline,
            )
        except HostError as error:
            kind = HostKeyMismatch if isinstance(error, HostKeyMismatch) else Unreachable
            passing = isinstance(error, Unreachable) and error.passing
            sentence = f"its jump host: {error.sentence}"
            raise kind(self._host.name, sentence, passing=passing, lead="") from error
        except TimeoutError as error:
            sentence = f"its jump host {jump} did not answer within the connect timeout"
            raise Unreachable(self._host.name, sentence, passing=True, lead="") from error

    def _login(self, endpoint: Endpoint, *, own: bool) -> Login:
        return Login(
            self._host.name,
            endpoint,
            self.deadline,
            self._options.shared.keys,
            key_file=expanded(self._host.key_file) if own and self._host.key_file else None,
            password=self._host.password if own else None,
            use_agent=self._options.use_agent,
        )

    def _connect(self, endpoint: Endpoint, via: fabric.Connection | None, *, jump: bool) -> fabric.Connection:
        connection: fabric.Connection | None = None
        sock: socket.socket | paramiko.Channel | None = None
        try:
            sock = self.dial(endpoint, via)
            connection = self._prepare(endpoint, sock, jump=jump)
            connection.open()
            connection.transport.set_keepalive(self._options.keepalive_s)
        except BaseException as error:
            if connection is not None:
                connection.client.close()
            if sock is not None:
                sock.close()
            if isinstance(error, FAILURES):
                raise self.failed(error, endpoint, jump=jump) from error
            raise
        return connection

    def failed(self, error: Exception, endpoint: Endpoint, *, jump: bool = False) -> HostError:
        """Return the error to raise for ``error``, one of ``FAILURES``."""
        if self.allowance.fault:
            return ProtocolError(self._host.name, f"{self.allowance.fault} ({endpoint})")
        where = _OF_JUMP if jump else _OF_HOST if self._host.address else _NO_ADDRESS
        sentence, ours = (
            _sentence(error, endpoint, self.deadline, where),
            _CURES.get(getattr(error, "errno", 0)) == ONLINE,
        )
        # If this machine's resolver or network failed, the default suggestion ``rebuild --check`` would not help.
        lead = "" if ours or isinstance(error, socket.gaierror) else None
        return Unreachable(self._host.name, sentence, passing=_passes(error), lead=lead)

    def dial(self, endpoint: Endpoint, via: fabric.Connection | None) -> socket.socket | paramiko.Channel:
        """Return a socket connected to ``endpoint``, through the jump host ``via`` if set. Raises one of
        ``FAILURES``.
        """
        if via is not None:
            target = (endpoint.address, endpoint.port)
            channel: paramiko.Channel = via.transport.open_channel(
                "direct-tcpip", target, ("", 0), timeout=self.deadline.left_s()
            )
            return channel
        if endpoint.proxy_command:
            return dial_command(endpoint.proxy_command)
        return dial(endpoint.address, endpoint.port, self.deadline, self._options.keepalive_s)

    def check(self, endpoint: Endpoint, sock: socket.socket | paramiko.Channel, *, jump: bool) -> HostKeyCheck:
        """Return the paramiko policy that verifies the host key of the server ``endpoint``."""
        return HostKeyCheck(
            self._host.name,
            endpoint,
            self._options.shared.known_hosts,
            self.deadline,
            peer=_peer(sock),
            accept_new=(self._host.host_keys or self._options.host_keys) == "accept-new",
            jump=jump,
        )

    def _prepare(self, endpoint: Endpoint, sock: socket.socket | paramiko.Channel, *, jump: bool) -> fabric.Connection:
        check = self.check(endpoint, sock, jump=jump)
        algorithms = wanted(endpoint.trust, check.known("ORDER"))
        allowance = None if jump else self.allowance
        connection = fabric.Connection(
            endpoint.address,
            user=endpoint.user,
            port=endpoint.port,
            # Fabric must not load configuration files. Fabric modifies this object, so each connection needs a new
            # object.
            config=fabric.Config(lazy=True, ssh_config=paramiko.SSHConfig()),
            connect_kwargs={
                "sock": sock,
                "timeout": self.deadline.left_s(),
                "transport_factory": functools.partial(make_transport, algorithms, self.deadline, allowance),
                "auth_strategy": self._login(endpoint, own=not jump),
            },
        )
        connection.client.set_missing_host_key_policy(check)
        return connection


def _peer(sock: socket.socket | paramiko.Channel) -> str:
    """Return the server's IP address for ``sock``, a direct TCP connection; empty for any other channel."""
    straight = isinstance(sock, socket.socket) and sock.family in (socket.AF_INET, socket.AF_INET6)
    return str(sock.getpeername()[0]) if straight else ""


def _passes(error: Exception) -> bool:
    """Return whether a retry may succeed after ``error``: false for an unknown name, or without a common algorithm."""
    return not isinstance(error, IncompatiblePeer) and getattr(error, "errno", None) != socket.EAI_NONAME


def _sentence(error: Exception, endpoint: Endpoint, deadline: Deadline, where: str) -> str:
    place, login = endpoint.place, f"(login as {endpoint.user})"
    if isinstance(error, socket.gaierror):
        cure = where
        if error.errno == socket.EAI_AGAIN:
            cure = _NO_ADDRESS_ONLINE if where == _NO_ADDRESS else ONLINE
        return f"the name '{endpoint.address}' cannot be resolved ({error.strerror or error}): {cure}"
    if deadline.passed() or isinstance(error, TimeoutError):
        return f"no answer from {place} within {deadline.timeout_s:g} s {login}: {_IS_IT_ON}, is a firewall between?"
    if isinstance(error, ConnectionRefusedError):
        return f"{place} refuses the connection {login}: is sshd running there?"
    if isinstance(error, OSError):
        cure = _CURES.get(error.errno or 0, "")
        return f"no connection to {place} {login}: {error.strerror or error}" + (f": {cure}" if cure else "")
    return f"no connection to {place} {login}: {_protocol_failure(error)}"


def _protocol_failure(error: Exception) -> str:
    if isinstance(error, paramiko.ChannelException):
        return f"the jump host cannot reach the server ({error.text})"
    if isinstance(error, IncompatiblePeer):
        return f"the server and this machine have no SSH algorithm in common ({error})"
    return (
        f"the server ended the connection before the login ({error or 'end of file'}); probably it is not an SSH "
        "server, or has too many connections at once (MaxStartups)"
    )
