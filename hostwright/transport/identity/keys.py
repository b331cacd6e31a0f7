"""Host keys as values: parsed strictly from text, and generated for a host that is about to be installed."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass

from hostwright.common.secret import Secret

#: Key types that sshd uses and paramiko can verify: both have dropped ssh-dss.
KEY_TYPES = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa")
LINE_CHARACTERS = 8192  #: of a key's line; an RSA key of 16384 bits, the most that sshd accepts, needs 2,750
_CLOUD_INIT = ("-----BEGIN SSH HOST KEY KEYS-----", "-----END SSH HOST KEY KEYS-----")


def fingerprint(blob: bytes) -> str:
    """The fingerprint that ``ssh-keygen -l`` prints."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class HostKey:
    """A host's public key: its type (``ssh-ed25519``) and its bytes in the wire format."""

    key_type: str
    blob: bytes

    @property
    def line(self) -> str:
        """``ssh-ed25519 AAAA…``, as in a ``.pub`` file, without a comment."""
        return f"{self.key_type} {base64.b64encode(self.blob).decode()}"

    @property
    def fingerprint(self) -> str:
        """``SHA256:…``, as ``ssh-keygen -l`` prints it."""
        return fingerprint(self.blob)

    @property
    def rsa_bits(self) -> int:
        """The length of an RSA key; 0 for other types."""
        if self.key_type != "ssh-rsa":
            return 0
        from paramiko import RSAKey

        return RSAKey(data=self.blob).get_bits()

    def __str__(self) -> str:
        return f"{self.key_type} {self.fingerprint}"

    @classmethod
    def parse(cls, text: str) -> HostKey:
        """The key in a public key line; a comment may follow. Raises ``ValueError`` for anything else."""
        line = text.strip()
        if len(line) > LINE_CHARACTERS:
            raise ValueError(f"a public key's line has at most {LINE_CHARACTERS} characters, this line has {len(line)}")
        if len(line.splitlines()) > 1:
            raise ValueError("expected one public key, found several lines")
        fields = line.split(None, 2)
        if len(fields) < 2 or fields[0] not in KEY_TYPES:
            raise ValueError(f"expected a public key ({KEY_TYPES[0]} AAAA…), found {line[:40]!r}")
        return cls(fields[0], _blob(fields[0], fields[1]))


def parse_many(text: str) -> tuple[HostKey, ...]:
    """The keys in many lines, each once, in their order.

    A line is that of a ``.pub`` file, or has the host's names before the key, as in ``known_hosts`` and in the output
    of ``ssh-keyscan``. Empty lines, comments, and the lines that cloud-init prints around the keys on the console are
    ignored. Raises ``ValueError`` with the line's number for anything else, including ``@revoked`` lines.
    """
    keys: dict[HostKey, None] = {}
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if not bare or bare.startswith("#") or bare in _CLOUD_INIT:
            continue
        first, *rest = bare.split(None, 1)
        named = bool(rest) and first not in KEY_TYPES and not first.startswith("@")
        try:
            keys[HostKey.parse(rest[0] if named else bare)] = None
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
    return tuple(keys)


def _blob(key_type: str, encoded: str) -> bytes:
    """The key's bytes, checked to be a key of that type."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    try:
        blob = base64.b64decode(encoded, validate=True)
        # An RSA key that is too short, or a point that is not on its curve, is invalid too.
        load_ssh_public_key(f"{key_type} {base64.b64encode(blob).decode()}".encode())
    except (binascii.Error, ValueError, UnsupportedAlgorithm) as error:
        raise ValueError(f"this is not a key of type {key_type}: {encoded[:40]!r}") from error
    return blob


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A host's key, both halves; ``private`` is the text of an OpenSSH private key file."""

    private: Secret
    public: HostKey


def generate() -> KeyPair:
    """A new ed25519 key for a host, without a passphrase, as sshd wants it."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return KeyPair(Secret(private), HostKey.parse(public))
