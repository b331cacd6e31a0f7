"""Hashed names in ``known_hosts``: HMAC-SHA1 (RFC 2104) of the name, with a separate salt for each name."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

T = TypeVar("T")

#: number of bytes in the salt of a hashed host name; OpenSSH ignores other salts
_SALT_BYTES = 20
_BLOCK_BYTES = 64  #: block size of SHA-1 in bytes
_INNER, _OUTER = (bytes(byte ^ pad for byte in range(256)) for pad in (0x36, 0x5C))
_sha1 = hashlib.sha1


class HashedName(NamedTuple):
    """A hashed host name in ``known_hosts``.

    ``inner`` and ``outer`` are the first blocks of the two hashes in HMAC, stored to halve the time of a comparison.
    """

    inner: bytes
    outer: bytes
    digest: bytes

    @classmethod
    def parse(cls, text: str) -> HashedName | None:
        """Parse ``text``, a hashed name in ``known_hosts``; ``None`` if it is not in OpenSSH's form."""
        try:
            salt, digest = (binascii.a2b_base64(part) for part in text.split("|")[2:])
        except ValueError:
            return None
        if len(salt) != _SALT_BYTES or _written(salt, digest) != text:
            return None
        block = salt.ljust(_BLOCK_BYTES, b"\0")
        return cls(block.translate(_INNER), block.translate(_OUTER), digest)


def named(name: str, lines: Iterable[tuple[HashedName, T]]) -> tuple[T, ...]:
    """Return the values of those ``lines`` with the hash of ``name``."""
    sha1, data, found = _sha1, name.encode(), list[T]()
    for (inner, outer, digest), line in lines:
        if sha1(outer + sha1(inner + data).digest()).digest() == digest:
            found.append(line)
    return tuple(found)


def hashed_name(name: str) -> str:
    """Hash ``name`` with a random salt, as ``ssh-keygen -H`` does."""
    salt = os.urandom(_SALT_BYTES)
    return _written(salt, hmac.digest(salt, name.encode(), "sha1"))


def _written(salt: bytes, digest: bytes) -> str:
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"
