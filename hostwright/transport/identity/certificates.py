"""Host certificates of OpenSSH (PROTOCOL.certkeys), parsed and verified by the cryptography library."""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostwright.transport.identity.keys import HostKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization import SSHCertificate

SUFFIX = "-cert-v01@openssh.com"
#: key type → number of fields in a public key; other key types (ecdsa) have two
_KEY_FIELDS = {"ssh-ed25519": 1, "ssh-rsa": 2}


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate with a valid signature that a server presented. ``key`` is the host's key."""

    blob: bytes
    key: HostKey
    authority: HostKey
    for_hosts: bool
    principals: tuple[str, ...]
    valid_after: int
    valid_before: int
    critical: tuple[str, ...]
    signed_with: str  #: algorithm with which the authority signed the certificate

    @property
    def line(self) -> str:
        """The certificate as in a ``-cert.pub`` file."""
        return f"{self.key.key_type}{SUFFIX} {base64.b64encode(self.blob).decode()}"

    def unfit(self, principal: str, algorithms: Collection[str], now_s: float) -> str:
        """Return the reason why the certificate is not valid for the host ``principal``, else an empty text."""
        return next(self._faults(principal, algorithms, now_s), "")

    def _faults(self, principal: str, algorithms: Collection[str], now_s: float) -> Iterator[str]:
        if not self.for_hosts:
            yield "it is a user's certificate, not a host's"
        if now_s < self.valid_after:
            yield "it is not valid yet"
        if now_s >= self.valid_before:
            yield "it has expired"
        if not self.principals:
            yield "it has no principals, which later versions of OpenSSH reject"
        if principal not in self.principals:
            yield f"it is not for {principal}, but for {', '.join(self.principals[:4])}"
        if self.critical:
            yield f"it has the critical option {self.critical[0]!r}, which no host certificate may have"
        if self.signed_with not in algorithms:
            yield f"it is signed with {self.signed_with}, which CASignatureAlgorithms does not allow"


def read(blob: bytes) -> Certificate:
    """Parse and verify ``blob``, a certificate in the wire format.

    Raises ``ValueError`` if the certificate is damaged, its signature is wrong, or the kind of signature is not
    supported.
    """
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import SSHCertificate, SSHCertificateType
    from cryptography.hazmat.primitives.serialization import load_ssh_public_identity as load

    try:
        found = load(f"{_type(blob)} {base64.b64encode(blob).decode()}".encode())
        if not isinstance(found, SSHCertificate):
            raise ValueError("the data is not an OpenSSH certificate")
        found.verify_cert_signature()
        return Certificate(
            blob,
            _plain_key(found),
            HostKey.parse(_line(found.signature_key())),
            found.type is SSHCertificateType.HOST,
            tuple(name.decode("utf-8", errors="replace") for name in found.valid_principals),
            found.valid_after,
            found.valid_before,
            tuple(name.decode("utf-8", errors="replace") for name in found.critical_options),
            _signed_with(blob),
        )
    except InvalidSignature as error:
        raise ValueError("the signature of the certificate is wrong") from error
    except (UnsupportedAlgorithm, TypeError, IndexError) as error:
        raise ValueError(f"the certificate cannot be verified here: {error}") from error


def plain(blob: bytes) -> bytes:
    """Return the host's key in the certificate ``blob`` (wire format); empty if the certificate is damaged."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import SSHCertificate
    from cryptography.hazmat.primitives.serialization import load_ssh_public_identity as load

    try:
        found = load(f"{_type(blob)} {base64.b64encode(blob).decode()}".encode())
        return _plain_key(found).blob if isinstance(found, SSHCertificate) else b""
    except (ValueError, UnsupportedAlgorithm, TypeError):
        return b""


def _plain_key(certificate: SSHCertificate) -> HostKey:
    return HostKey.parse(_line(certificate.public_key()))


def _line(key: object) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()  # type: ignore[attr-defined,no-any-return]


def _type(blob: bytes) -> str:
    found = blob[4 : 4 + int.from_bytes(blob[:4], "big")].decode("ascii", errors="replace")
    if not re.fullmatch(r"[a-z0-9@.-]+", found):
        raise ValueError("the data is not an OpenSSH certificate")
    return found


def _signed_with(blob: bytes) -> str:
    from paramiko.message import Message

    message = Message(blob)
    kind = message.get_text().removesuffix(SUFFIX)
    # Skip fields (in the order of OpenSSH's PROTOCOL.certkeys), because only the signature at the end is needed.
    for _ in range(1 + _KEY_FIELDS.get(kind, 2)):
        message.get_binary()
    message.get_int64(), message.get_int()
    message.get_binary(), message.get_binary()
    message.get_int64(), message.get_int64()
    for _ in range(4):
        message.get_binary()
    return Message(message.get_binary()).get_text()
