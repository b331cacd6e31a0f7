"""A transport within bounds that asks for the right kinds of host key, and keeps what the server showed."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import paramiko
from paramiko.message import Message
from paramiko.packet import Packetizer

from hostwright.transport.exchange import Deadline
from hostwright.transport.identity.certificates import SUFFIX, Certificate, read
from hostwright.transport.identity.hostkeys import AUTHORITY, Known
from hostwright.transport.identity.keys import KEY_TYPES, HostKey
from hostwright.transport.routing.sshconfig import Trust

#: The cheapest of the ciphers that every sshd of the last ten years has: 448 MB/s were measured through one exec
#: channel on loopback, against 290 MB/s with fabric.put's defaults.
_FAST_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com")
_PACKET_BYTES = 256 * 1024 + 64  #: OpenSSH's own bound, with a checksum: it sends none that is longer
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

    @property
    def shown(self) -> HostKey:
        """The key that the server proved to hold."""
        key = self.get_remote_server_key()
        return HostKey(key.get_name(), key.asbytes())

    def certificate(self) -> Certificate | None:
        """The certificate in which it showed it. Raises ``ValueError`` for one that is damaged or not verified."""
        return read(self._shown) if SUFFIX.encode() in self._shown[:64] else None


class _Packetizer(Packetizer):
    """Asks for new keys after 32 GiB instead of 512 MiB: AES-GCM allows for more (RFC 4344, 3.2: 64 GiB).

    If the server closes a channel while paramiko waits for the new keys, the whole connection is blocked for 30 s and
    then ends.
    """

    REKEY_BYTES = 32 * 1024**3
    REKEY_PACKETS = 2**31
    _greeting_bytes = 0

    def read_all(self, n: int, check_rekey: bool = False) -> bytes:
        """paramiko would believe any length that a server sends and collect up to 4 GiB before it looks at them."""
        if n > _PACKET_BYTES:
            raise paramiko.SSHException("it announces a packet that is far too long")
        return super().read_all(n, check_rekey)

    def _read_timeout(self, timeout: float) -> bytes:
        """A piece of what a server sends before its version line; paramiko would take it without end."""
        data: bytes = super()._read_timeout(timeout)  # type: ignore[misc]  # its only way to read a line
        self._greeting_bytes += len(data)
        if self._greeting_bytes > _GREETING_BYTES:
            raise paramiko.SSHException("it sends a greeting that does not end")
        return data


def make_transport(
    algorithms: Sequence[str],
    deadline: Deadline,
    sock: socket.socket | paramiko.Channel,
    disabled_algorithms: dict[str, list[str]] | None = None,
) -> Transport:
    """A transport with our timeouts, the fast ciphers first, and these algorithms for the host key.

    Key exchange keeps paramiko's order: ML-KEM with X25519 if the server supports it, else X25519; both are cheap.
    """
    transport = Transport(sock, disabled_algorithms=disabled_algorithms, packetizer_class=_Packetizer)
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
