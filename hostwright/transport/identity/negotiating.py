"""A paramiko transport that limits the data from a server, selects host key algorithms, and keeps the server's key."""

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

#: fastest ciphers that every sshd of the last ten years supports: 448 MB/s on loopback
_FAST_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com")
_PACKET_BYTES = 256 * 1024 + 64  #: maximum number of bytes of an SSH packet: OpenSSH's limit plus a checksum
_OPENSSH = "SSH-2.0-OpenSSH_"  #: prefix of the version line that OpenSSH sends
_KEX_KINDS = range(MSG_KEXINIT, 50)  #: message numbers of a key exchange (RFC 4250, 4.1.2)
#: maximum number of bytes of a key exchange message (our choice); paramiko's time grows with the square of this size
_KEX_BYTES = 64 * 1024
_REKEYING = 200  #: number of ordinary messages that cause as much work as one key exchange (our estimate)
#: message with an item count that paramiko does not check → number of strings before the count
_STRINGS_BEFORE_COUNT = {MSG_EXT_INFO: 0, MSG_USERAUTH_INFO_REQUEST: 3}
#: maximum number of bytes that a server may send before the version line (our choice; RFC 4253, 4.2)
_GREETING_BYTES = 32 * 1024

_BLOB_TYPES = {"rsa-sha2-256": "ssh-rsa", "rsa-sha2-512": "ssh-rsa"}


def key_type(algorithm: str) -> str:
    """Return the type of the keys with which ``algorithm`` signs, without the suffix for certificates."""
    plain = algorithm.removesuffix(SUFFIX)
    return _BLOB_TYPES.get(plain, plain)


def wanted(trust: Trust, known: Known) -> tuple[str, ...]:
    """Return the host key algorithms to request from a server: algorithms for known keys first.

    The configured order is unchanged if the user set it, or if a key of the first type in the order is known.
    """
    algorithms = trust.algorithms
    types = {key_type(name) for name in known.key_types}
    if trust.own_order or (algorithms and key_type(algorithms[0]) in types):
        return algorithms
    authority = any(entry.marker == AUTHORITY for entry in known.entries)

    def last(algorithm: str) -> bool:
        return not ((authority and algorithm.endswith(SUFFIX)) or key_type(algorithm) in types)

    return tuple(sorted(algorithms, key=last))


class Transport(paramiko.Transport):
    """A paramiko transport that prefers host certificates to plain host keys, and keeps the presented certificate."""

    algorithms: Sequence[str] = ()
    _shown: bytes = b""
    #: seconds between wake-ups of an idle reading thread (our choice; paramiko's 0.1 s took a tenth of the CPU time)
    _active_check_timeout = 0.5

    completion_event: threading.Event | None
    auth_handler: AuthHandler | None

    def start_client(self, event: threading.Event | None = None, timeout: float | None = None) -> None:
        """Like the method of ``paramiko.Transport``, but waits for the key exchange without polling."""
        if event is not None:
            super().start_client(event)
            return
        done = threading.Event()
        super().start_client(done)
        done.wait(timeout)
        if not self.is_active():
            raise self.get_exception() or paramiko.SSHException("Negotiation failed.")

    def close(self) -> None:
        """Like the method of ``paramiko.Transport``, but ends the reading thread and wakes waiting threads at once."""
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
        """The host key algorithms to offer to the server, for ``paramiko.Transport``."""
        return tuple(name for name in self.algorithms if key_type(name) in KEY_TYPES)

    def _verify_key(self, host_key: bytes, sig: bytes) -> None:
        """Verify the signature, and check that the key and the signature have the negotiated type."""
        agreed = str(self.host_key_type)
        plain, suffix = agreed.removesuffix(SUFFIX), SUFFIX if agreed.endswith(SUFFIX) else ""
        kinds = Message(host_key).get_text(), Message(sig).get_text()
        if kinds != (key_type(plain) + suffix, plain):
            raise paramiko.SSHException(f"the server signed with {kinds[1]} and {kinds[0]} instead of {agreed}")
        super()._verify_key(host_key, sig)  # type: ignore[misc]  # missing in types-paramiko
        self._shown = host_key

    def get_exception(self) -> Exception | None:
        """Return the error that ended the connection; errors for out-of-order messages become ``SSHException``."""
        error: Exception | None = super().get_exception()
        if error is None or isinstance(error, (OSError, EOFError, paramiko.SSHException)):
            return error
        unread = paramiko.SSHException("the server sent an invalid message")
        unread.__cause__ = error
        return unread

    @property
    def shown(self) -> HostKey:
        """The host key that the server proved to hold."""
        key = self.get_remote_server_key()
        return HostKey(key.get_name(), key.asbytes())

    def certificate(self) -> Certificate | None:
        """Return the host certificate that the server presented, or ``None`` for a plain key.

        Raises ``ValueError`` if the certificate is damaged or cannot be verified.
        """
        return read(self._shown) if SUFFIX.encode() in self._shown[:64] else None

    def auth_publickey(self, username: str, key: paramiko.PKey, event: threading.Event | None = None) -> list[str]:
        """Like the method of ``paramiko.Transport``, but saves a round trip if the server is OpenSSH."""
        if event or "rsa" in key.get_name() or not self.remote_version.startswith(_OPENSSH) or not self.is_active():
            return super().auth_publickey(username, key, event)
        done = threading.Event()
        self.auth_handler = login = _EarlyLogin(self)
        login.auth_publickey(username, key, done)
        return login.wait_for_response(done)


class _EarlyLogin(AuthHandler):
    """Sends the login request right after the service request, without waiting for the reply.

    Every server accepts the requested service.
    """

    def wait_for_response(self, event: threading.Event) -> list[str]:
        event.wait(self.transport.auth_timeout)
        return super().wait_for_response(event)

    def _request_auth(self) -> None:
        super()._request_auth()  # type: ignore[misc]  # private in paramiko, so missing in types-paramiko
        accepted = Message()
        accepted.add_string("ssh-userauth")
        accepted.rewind()
        super()._parse_service_accept(accepted)  # type: ignore[misc]

    def _parse_service_accept(self, _message: Message) -> None:
        """Ignore the server's reply to the service request, because the login request has already been sent."""


class _Packetizer(Packetizer):
    """Limits received packets, and requests new session keys after 32 GiB; AES-GCM allows 64 GiB (RFC 4344, 3.2)."""

    REKEY_BYTES = 32 * 1024**3
    REKEY_PACKETS = 2**31
    _greeting_bytes = 0

    def __init__(self, allowance: Allowance | None, sock: socket.socket):
        """``allowance`` is ``None`` for a jump host, which forwards the traffic of several hosts."""
        super().__init__(sock)
        self._allowance = allowance

    def read_all(self, n: int, check_rekey: bool = False) -> bytes:
        """Reject long packets. paramiko would read up to 4 GiB before verification."""
        if n > _PACKET_BYTES:
            raise paramiko.SSHException("the server announced a packet that exceeds the limit")
        return super().read_all(n, check_rekey)

    def read_message(self) -> tuple[int, Message]:
        """Raises ``SSHException`` if the host's allowance is used up, or if the message is malicious."""
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
        """Send ``data``, and raise the host's allowance, because the host replies to data with window adjustments."""
        content = data.asbytes()
        if self._allowance and content[0] == MSG_CHANNEL_DATA:
            self._allowance.sent(len(content))
        super().send_message(data)

    def _read_timeout(self, timeout: float) -> bytes:
        """Limit the length of the text before the server's version line."""
        data: bytes = super()._read_timeout(timeout)  # type: ignore[misc]  # paramiko reads lines only with this method
        self._greeting_bytes += len(data)
        if self._greeting_bytes > _GREETING_BYTES:
            raise paramiko.SSHException("the server sent an endless greeting")
        return data


def _fault(kind: int, message: Message, size: int) -> str:
    """Return the error text for a malicious ``message`` that paramiko would accept; empty for a valid message."""
    if kind not in MSG_NAMES:  # For an unknown type, paramiko would raise KeyError.
        return "the server sent a message of unknown type"
    if kind in _KEX_KINDS and size > _KEX_BYTES:
        return "the server sent a key exchange message that exceeds the limit"
    strings = _STRINGS_BEFORE_COUNT.get(kind)
    if strings is not None and _count(message, strings) > size:
        return "the server announced more items than its message contains"
    return ""


def _count(message: Message, strings: int) -> int:
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
    """Return a transport with Hostwright's timeouts, a preference for fast ciphers, and the host key ``algorithms``."""
    packetizer: Any = functools.partial(_Packetizer, allowance)
    transport = Transport(sock, disabled_algorithms=disabled_algorithms, packetizer_class=packetizer)
    left_s = max(deadline.left_s(), 0.001)
    transport.banner_timeout = transport.handshake_timeout = transport.channel_timeout = left_s
    transport.algorithms = algorithms
    security = transport.get_security_options()
    security.ciphers = _first(_FAST_CIPHERS, security.ciphers)
    return transport


def _first(preferred: Sequence[str], offered: Sequence[str]) -> tuple[str, ...]:
    first = [name for name in preferred if name in offered]
    return (*first, *(name for name in offered if name not in preferred))
