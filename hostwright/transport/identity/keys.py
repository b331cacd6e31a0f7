"""Host keys: strict parsing from text, and generation for hosts that are about to be installed."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass

from hostwright.common.secret import Secret

#: key types that sshd uses and paramiko can verify
KEY_TYPES = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa")
#: maximum number of characters of a line with a key (a 16384-bit RSA key has 2,750)
LINE_CHARACTERS = 8192
_DSA = "ssh-dss"  #: obsolete key type; sshd has not offered keys of this type by default since OpenSSH 7.0
_CLOUD_INIT = ("-----BEGIN SSH HOST KEY KEYS-----", "-----END SSH HOST KEY KEYS-----")


def fingerprint(blob: bytes) -> str:
    """The fingerprint of the key ``blob`` (wire format), as printed by ``ssh-keygen -l``."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class HostKey:
    """A host's public key: key type (``ssh-ed25519``) and key in the wire format."""

    key_type: str
    blob: bytes

    @property
    def line(self) -> str:
        """The key as in a ``.pub`` file, without a comment: ``ssh-ed25519 AAAA…``."""
        return f"{self.key_type} {base64.b64encode(self.blob).decode()}"

    @property
    def fingerprint(self) -> str:
        """The fingerprint as printed by ``ssh-keygen -l``: ``SHA256:…``."""
        return fingerprint(self.blob)

    @property
    def rsa_bits(self) -> int:
        """The length of an RSA key in bits; 0 for other types."""
        if self.key_type != "ssh-rsa":
            return 0
        from paramiko import RSAKey

        return RSAKey(data=self.blob).get_bits()

    def __str__(self) -> str:
        return f"{self.key_type} {self.fingerprint}"

    @classmethod
    def parse(cls, text: str) -> HostKey:
        """Parse a public key line, with or without a comment. Raises ``ValueError`` for any other text."""
        line = text.strip()
        if len(line) > LINE_CHARACTERS:
            raise ValueError(f"the line has {len(line)} characters; a public key has at most {LINE_CHARACTERS}")
        if len(line.splitlines()) > 1:
            raise ValueError("expected one public key, found several lines")
        fields = line.split(None, 2)
        if len(fields) < 2 or fields[0] not in KEY_TYPES:
            raise ValueError(f"expected a public key ({KEY_TYPES[0]} AAAA…), found {line[:40]!r}")
        return cls(fields[0], _blob(fields[0], fields[1]))


def parse_many(text: str) -> tuple[HostKey, ...]:
    """Parse the keys of many lines; return each key once, in order.

    A line has the form of a ``.pub`` file or of ``known_hosts``. Empty lines, comments, DSA keys and the lines that
    cloud-init prints around keys are ignored. Raises ``ValueError`` with the line number for any other line.
    """
    keys: dict[HostKey, None] = {}
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if not bare or bare.startswith("#") or bare in _CLOUD_INIT:
            continue
        first, *rest = bare.split(None, 1)
        named = bool(rest) and first not in (*KEY_TYPES, _DSA) and not first.startswith("@")
        key = rest[0] if named else bare
        if key.startswith(f"{_DSA} "):
            continue
        try:
            keys[HostKey.parse(key)] = None
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
    return tuple(keys)


def _blob(key_type: str, encoded: str) -> bytes:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    try:
        blob = base64.b64decode(encoded, validate=True)
        # This call also rejects short RSA keys, and ECDSA points that are not on the curve.
        load_ssh_public_key(f"{key_type} {base64.b64encode(blob).decode()}".encode())
    except (binascii.Error, ValueError, UnsupportedAlgorithm) as error:
        raise ValueError(f"not a key of type {key_type}: {encoded[:40]!r}") from error
    return blob


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A host's key pair; ``private`` is the text of an OpenSSH private key file."""

    private: Secret
    public: HostKey


def generate() -> KeyPair:
    """Generate an ed25519 host key without a passphrase."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return KeyPair(Secret(private), HostKey.parse(public))
