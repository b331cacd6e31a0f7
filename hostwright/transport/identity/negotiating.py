"""A transport within bounds that asks for the right kinds of host key, and keeps what the server showed."""

from __future__ import annotations

import functools
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import paramiko
from paramiko.auth_handler import AuthHandler
from paramiko.common import MSG_CHANNEL_DATA, MSG_EXT_INFO, MSG_KEXINIT, MSG_NAMES, MSG_USERAUTH_INFO_REQUEST
from paramiko.message import Message
from paramiko.packet import Packetizer

from hostwright.transport.exchange import Allowance, Deadline
from hostwright.transport.identity.certificates import SUFFIX, Certificate, read
from hostwright.transport.identity.hostkeys import AUTHORITY, Known
from hostwright.transport.identity.keys import KEY_TYPES, HostKey
from hostwright.transport.routing.sshconfig import Trust

#: The cheapest of the ciphers that every sshd of the last ten years has: 448 MB/s were measured through one exec
#: channel on loopback, against 290 MB/s with fabric.put's defaults.
_FAST_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com")
_PACKET_BYTES = 256 * 1024 + 64  #: OpenSSH's own bound, with a checksum: it sends none that is longer
_OPENSSH = "SSH-2.0-OpenSSH_"  #: how its servers begin to say their version
_KEX_KINDS = range(MSG_KEXINIT, 50)  #: RFC 4250, 4.1.2
_KEX_BYTES = 64 * 1024  #: our choice: paramiko takes time with the square of a number's length
_REKEYING = 200  #: our estimate: an exchange of keys is as much work as so many other messages
#: messages with a count of items, of which paramiko reads as many as are announced, there or not
_STRINGS_BEFORE_COUNT = {MSG_EXT_INFO: 0, MSG_USERAUTH_INFO_REQUEST: 3}
_GREETING_BYTES = 32 * 1024  #: our choice: RFC 4253, 4.2, allows lines before the version; OpenSSH reads 1024 of 8 KiB

_BLOB_TYPES = {"rsa-sha2-256": "ssh-rsa", "rsa-sha2-512": "ssh-rsa"}


def key_type(algorithm: str) -> str:
    """The type of the keys, without a certificate, with which an algorithm signs."""
    plain = algorithm.removesuffix(SUFFIX)
    return _BLOB_TYPES.get(plain, plain)


def wanted(trust: Trust, known: Known) -> tuple[str, ...]:
    """HostKeyAlgorithms in the order in which OpenSSH would ask for them: what is known comes first, unless the user
    gave an order, or a key of the best type is known."""
    algorithms = trust.algorithms
    types = {key_type(name) for name in known.key_types}
    if trust.own_order or (algorithms and key_type(algorithms[0]) in types):
        return algorithms
    authority = any(entry.marker == AUTHORITY for entry in known.entries)

    def last(algorithm: str) -> bool:
        return not ((authority and algorithm.endswith(SUFFIX)) or key_type(algorithm) in types)

    return tuple(sorted(algorithms, key=last))


class Transport(paramiko.Transport):
    """paramiko would ask for keys before certificates, and forget the certificate."""

    algorithms: Sequence[str] = ()
    _shown: bytes = b""
    #: Our choice. So often its thread wakes up while nothing comes; with paramiko's 0.1 s that was a tenth of what an
    #: audit of a fleet costs. What it then looks at are limits of many seconds.
    _active_check_timeout = 0.5

    completion_event: threading.Event | None
    auth_handler: AuthHandler | None

    def start_client(self, event: threading.Event | None = None, timeout: float | None = None) -> None:
        """See ``paramiko.Transport``, which looks ten times a second whether keys are agreed upon."""
        if event is not None:
            super().start_client(event)
            return
        done = threading.Event()
        super().start_client(done)
        done.wait(timeout)
        if not self.is_active():
            raise self.get_exception() or paramiko.SSHException("Negotiation failed.")

    def close(self) -> None:
        """See ``paramiko.Transport``; the thread that reads ends at once, and who waits for keys or a login goes on."""
        if isinstance(self.sock, socket.socket):
            with suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)
        super().close()
        if self.completion_event is not None:
            self.completion_event.set()
        if self.auth_handler is not None:
            self.auth_handler.abort()

    @property
    def preferred_keys(self) -> tuple[str, ...]:
        """See ``paramiko.Transport``."""
        return tuple(name for name in self.algorithms if key_type(name) in KEY_TYPES)

    def _verify_key(self, host_key: bytes, sig: bytes) -> None:
        """paramiko checks that the signature is right; also that key and signature are of the kind agreed upon."""
        agreed = str(self.host_key_type)
        plain, suffix = agreed.removesuffix(SUFFIX), SUFFIX if agreed.endswith(SUFFIX) else ""
        kinds = Message(host_key).get_text(), Message(sig).get_text()
        if kinds != (key_type(plain) + suffix, plain):
            raise paramiko.SSHException(f"it signed with {kinds[1]} and {kinds[0]} instead of {agreed}")
        super()._verify_key(host_key, sig)  # type: ignore[misc]  # types-paramiko leaves it out
        self._shown = host_key

    def get_exception(self) -> Exception | None:
        """What ended the connection; paramiko stumbles over messages that come at the wrong place."""
        error: Exception | None = super().get_exception()
        if error is None or isinstance(error, (OSError, EOFError, paramiko.SSHException)):
            return error
        unread = paramiko.SSHException("it sends what cannot be read")
        unread.__cause__ = error
        return unread

    @property
    def shown(self) -> HostKey:
        """The key that the server proved to hold."""
        key = self.get_remote_server_key()
        return HostKey(key.get_name(), key.asbytes())

    def certificate(self) -> Certificate | None:
        """The certificate in which it showed it. Raises ``ValueError`` for one that is damaged or not verified."""
        return read(self._shown) if SUFFIX.encode() in self._shown[:64] else None

    def auth_publickey(self, username: str, key: paramiko.PKey, event: threading.Event | None = None) -> list[str]:
        """See ``paramiko.Transport``; a round trip less with OpenSSH's server.

        Not with RSA: how to sign with that is known only once the server has said what it takes.
        """
        if event or "rsa" in key.get_name() or not self.remote_version.startswith(_OPENSSH) or not self.is_active():
            return super().auth_publickey(username, key, event)
        done = threading.Event()
        self.auth_handler = login = _EarlyLogin(self)
        login.auth_publickey(username, key, done)
        return login.wait_for_response(done)


class _EarlyLogin(AuthHandler):
    """Asks for the login in one flight with the service for logins, which every server has: paramiko waits for that."""

    def wait_for_response(self, event: threading.Event) -> list[str]:
        """See ``AuthHandler``, which looks ten times a second whether there is an answer."""
        event.wait(self.transport.auth_timeout)
        return super().wait_for_response(event)

    def _request_auth(self) -> None:
        super()._request_auth()  # type: ignore[misc]  # types-paramiko leaves out what is paramiko's own
        accepted = Message()
        accepted.add_string("ssh-userauth")
        accepted.rewind()
        super()._parse_service_accept(accepted)  # type: ignore[misc]

    def _parse_service_accept(self, _message: Message) -> None:
        """The server's own word comes too late to be waited for."""


class _Packetizer(Packetizer):
    """Asks for new keys after 32 GiB instead of 512 MiB: AES-GCM allows for more (RFC 4344, 3.2: 64 GiB).

    If the server closes a channel while paramiko waits for the new keys, the whole connection is blocked for 30 s and
    then ends.
    """

    REKEY_BYTES = 32 * 1024**3
    REKEY_PACKETS = 2**31
    _greeting_bytes = 0

    def __init__(self, allowance: Allowance | None, sock: socket.socket):
        """``allowance`` is the host's; a jump host carries the traffic of others, and has none."""
        super().__init__(sock)
        self._allowance = allowance

    def read_all(self, n: int, check_rekey: bool = False) -> bytes:
        """paramiko would believe any length that a server sends and collect up to 4 GiB before it looks at them."""
        if n > _PACKET_BYTES:
            raise paramiko.SSHException("it announces a packet that is far too long")
        return super().read_all(n, check_rekey)

    def read_message(self) -> tuple[int, Message]:
        """The next message, if the host may send one more, and reading it takes work by its length."""
        kind, message = super().read_message()
        size = message.packet.getbuffer().nbytes
        fault = _fault(kind, message, size)
        if self._allowance:
            self._allowance.fault = self._allowance.fault or fault
            if not self._allowance.take(size, _REKEYING if kind == MSG_KEXINIT else 1):
                fault = self._allowance.fault
        if fault:
            raise paramiko.SSHException(fault)
        return kind, message

    def send_message(self, data: Message) -> None:
        """Send a message; the host may answer data by saying that it has room for more."""
        content = data.asbytes()
        if self._allowance and content[0] == MSG_CHANNEL_DATA:
            self._allowance.sent(len(content))
        super().send_message(data)

    def _read_timeout(self, timeout: float) -> bytes:
        """A piece of what a server sends before its version line; paramiko would take it without end."""
        data: bytes = super()._read_timeout(timeout)  # type: ignore[misc]  # its only way to read a line
        self._greeting_bytes += len(data)
        if self._greeting_bytes > _GREETING_BYTES:
            raise paramiko.SSHException("it sends a greeting that does not end")
        return data


def _fault(kind: int, message: Message, size: int) -> str:
    """What is wrong with a message that paramiko would take for good; empty if nothing is."""
    if kind not in MSG_NAMES:  # paramiko would look for its name
        return "it sends messages that SSH does not know"
    if kind in _KEX_KINDS and size > _KEX_BYTES:
        return "it sends numbers for the exchange of keys that are far too long"
    strings = _STRINGS_BEFORE_COUNT.get(kind)
    if strings is not None and _count(message, strings) > size:
        return "it announces more items than fit into its message"
    return ""


def _count(message: Message, strings: int) -> int:
    """The number that stands after so many strings of a message."""
    copy = Message(message.asbytes())
    for _ in range(strings):
        copy.get_string()
    return int(copy.get_int())


def make_transport(
    algorithms: Sequence[str],
    deadline: Deadline,
    allowance: Allowance | None,
    sock: socket.socket | paramiko.Channel,
    disabled_algorithms: dict[str, list[str]] | None = None,
) -> Transport:
    """A transport with our timeouts, the fast ciphers first, and these algorithms for the host key.

    Key exchange keeps paramiko's order: ML-KEM with X25519 if the server supports it, else X25519; both are cheap.
    """
    packetizer: Any = functools.partial(_Packetizer, allowance)
    transport = Transport(sock, disabled_algorithms=disabled_algorithms, packetizer_class=packetizer)
    left_s = max(deadline.left_s(), 0.001)
    transport.banner_timeout = transport.handshake_timeout = transport.channel_timeout = left_s
    transport.algorithms = algorithms
    security = transport.get_security_options()
    security.ciphers = _first(_FAST_CIPHERS, security.ciphers)
    return transport


def _first(preferred: Sequence[str], offered: Sequence[str]) -> tuple[str, ...]:
    """``offered`` with the preferred ones moved to the front."""
    first = [name for name in preferred if name in offered]
    return (*first, *(name for name in offered if name not in preferred))
