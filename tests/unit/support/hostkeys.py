"""Host keys that are equal in every process, because several processes collect the tests of one file."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from hostwright.transport.identity.keys import HostKey


def host_key(number: int) -> HostKey:
    """An ed25519 key for each number from 0 to 255."""
    public = Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32).public_key()
    return HostKey.parse(public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode())
