"""Host keys that are the same in every process: the tests of one file are collected by several."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from hostwright.transport.identity.keys import HostKey


def host_key(number: int) -> HostKey:
    """An ed25519 key, another one for each number from 0 to 255."""
    public = Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32).public_key()
    return HostKey.parse(public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode())
