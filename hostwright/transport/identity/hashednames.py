"""Names in ``known_hosts`` that nobody can read: HMAC-SHA1 (RFC 2104) of the name, with a salt of its own each."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

T = TypeVar("T")

_SALT_BYTES = 20  #: as in ssh-keygen -H; OpenSSH finds no name in a line with another
_BLOCK_BYTES = 64  #: of SHA-1
_INNER, _OUTER = (bytes(byte ^ pad for byte in range(256)) for pad in (0x36, 0x5C))
_sha1 = hashlib.sha1


class HashedName(NamedTuple):
    """A name that can only be compared. Its salt is kept as the two blocks with which the HMAC begins: a comparison
    takes half the time of ``hmac.digest``."""

    inner: bytes
    outer: bytes
    digest: bytes

    @classmethod
    def parse(cls, text: str) -> HashedName | None:
        """A hashed name as it stands in the file. OpenSSH compares the text, so that only what it would write itself is
        one."""
        try:
            salt, digest = (binascii.a2b_base64(part) for part in text.split("|")[2:])
        except ValueError:
            return None
        if len(salt) != _SALT_BYTES or _written(salt, digest) != text:
            return None
        block = salt.ljust(_BLOCK_BYTES, b"\0")
        return cls(block.translate(_INNER), block.translate(_OUTER), digest)


def named(name: str, lines: Iterable[tuple[HashedName, T]]) -> tuple[T, ...]:
    """The lines with this name. It is the one loop over all lines of a file, so that it calls nothing but the hash."""
    sha1, data, found = _sha1, name.encode(), list[T]()
    for (inner, outer, digest), line in lines:
        if sha1(outer + sha1(inner + data).digest()).digest() == digest:
            found.append(line)
    return tuple(found)


def hashed_name(name: str) -> str:
    """The name so that nobody reads it, as ``ssh-keygen -H`` writes it."""
    salt = os.urandom(_SALT_BYTES)
    return _written(salt, hmac.digest(salt, name.encode(), "sha1"))


def _written(salt: bytes, digest: bytes) -> str:
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"
