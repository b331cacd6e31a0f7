"""A transport that asks for the right kinds of host key, and keeps what the server showed."""

from __future__ import annotations

from collections.abc import Sequence

import paramiko
from paramiko.message import Message

from hostwright.transport.identity.certificates import SUFFIX, Certificate, read
from hostwright.transport.identity.hostkeys import AUTHORITY, Known
from hostwright.transport.identity.keys import KEY_TYPES, HostKey
from hostwright.transport.routing.sshconfig import Trust

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
