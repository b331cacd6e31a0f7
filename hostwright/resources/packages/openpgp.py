"""Which keys a keyring holds and when they expired, read from its packets: hosts have ``gpgv`` alone, or Sequoia's
``sqv``."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime

_KEY, _SUBKEY, _SIGNATURE = 6, 14, 2  #: tags of packets (RFC 4880, 4.3)
_BINDING = {0x10, 0x11, 0x12, 0x13, 0x18, 0x1F}  #: types of signatures that say how long a key counts (5.2.1)
_EXPIRES, _MADE, _FLAGS = 9, 2, 27  #: types of subpackets (5.2.3.1)
_SIGNS = 0x02  #: the flag of a key that signs data (5.2.3.21)


def dearmored(key: bytes) -> bytes:
    """The packets of a key's file, ASCII-armored or not (RFC 4880, 6.2). Raises ``ValueError``."""
    _, begin, rest = key.partition(b"-----BEGIN PGP PUBLIC KEY BLOCK-----")
    if not begin:
        return key
    lines = rest.partition(b"-----END")[0].replace(b"\r", b"").partition(b"\n\n")[2].splitlines()
    return base64.b64decode(b"".join(line for line in lines if not line.startswith(b"=")))


def fingerprints(ring: bytes) -> tuple[str, ...]:
    """The fingerprint of each key of a keyring, without subkeys (RFC 4880, 12.2). Raises ``ValueError`` for what is no
    keyring, and for keys of another version than 4, whose fingerprints are made otherwise."""
    found = []
    for tag, body in _packets(ring):
        if tag == _KEY:
            if body[:1] != b"\x04":
                raise ValueError("a key of another version")
            named = hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body, usedforsecurity=False)
            found.append(named.hexdigest().upper())
    return tuple(found)


def expired_on(ring: bytes, now: datetime) -> datetime | None:
    """When the last of a keyring's signing keys expired; ``None`` where one counts still. Raises ``ValueError`` where
    that cannot be read: a keyring is whatever lies at a path that somebody wrote into a source.
    """
    try:
        ends = list(_ends(ring))
        if not ends or None in ends:
            return None
        last = datetime.fromtimestamp(max(end for end in ends if end is not None), UTC)
    except (IndexError, OverflowError) as error:  # a field ends early, or is no time
        raise ValueError("a damaged packet") from error
    return last if last <= now else None


def _ends(ring: bytes) -> Iterator[int | None]:
    """For each key that signs, the second at which it expires; ``None`` for never. A subkey ends with its key."""
    made, newest, end, signs = 0, -1, None, False
    primary: int | None = None
    subkey = False
    for tag, body in [*_packets(ring), (_KEY, b"")]:
        if tag in (_KEY, _SUBKEY):
            if made and signs:
                yield _least(end, primary) if subkey else end
            if made and not subkey:
                primary = end
            subkey = tag == _SUBKEY
            made, newest, end, signs = int.from_bytes(body[1:5], "big"), -1, None, not subkey
            if body and body[0] not in (4, 6):
                raise ValueError("a key of another version")
        elif tag == _SIGNATURE and made and body[:1] in (b"\x04", b"\x06") and body[1] in _BINDING:
            parts = dict(_subpackets(body))
            at = int.from_bytes(parts.get(_MADE, b""), "big")
            if at >= newest:
                seconds = int.from_bytes(parts.get(_EXPIRES, b""), "big")
                newest, end = at, made + seconds if seconds else None
                flags = parts.get(_FLAGS)
                signs = bool(flags[0] & _SIGNS) if flags else not subkey


def _least(end: int | None, primary: int | None) -> int | None:
    known = [second for second in (end, primary) if second is not None]
    return min(known) if known else None


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and body of each packet (RFC 4880, 4.2). Raises ``ValueError`` for anything else."""
    at = 0
    while at < len(data):
        head = data[at]
        if not head & 0x80:
            raise ValueError("no packet")
        if head & 0x40:
            tag, (size, at) = head & 0x3F, _length(data, at + 1)
        else:
            tag, octets = head >> 2 & 0x0F, (1, 2, 4, 0)[head & 3]
            size, at = int.from_bytes(data[at + 1 : at + 1 + octets], "big"), at + 1 + octets
            if not octets:
                raise ValueError("a packet without an end")
        if at + size > len(data):
            raise ValueError("a packet that is cut off")
        yield tag, data[at : at + size]
        at += size


def _length(data: bytes, at: int) -> tuple[int, int]:
    """A length in the new format, and where it ends."""
    first = data[at] if at < len(data) else 255
    if first < 192:
        return first, at + 1
    if first < 224:
        return (first - 192 << 8) + int.from_bytes(data[at + 1 : at + 2], "big") + 192, at + 2
    if first < 255:
        raise ValueError("a packet in pieces")
    return int.from_bytes(data[at + 1 : at + 5], "big"), at + 5


def _subpackets(signature: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and content of each subpacket that is signed (5.2.3.1)."""
    octets = 4 if signature[0] == 6 else 2
    size = int.from_bytes(signature[4 : 4 + octets], "big")
    data = signature[4 + octets : 4 + octets + size]
    at = 0
    while at < len(data):
        length, at = _length(data, at)
        if length:
            yield data[at] & 0x7F, data[at + 1 : at + length]
        at += max(length, 1)
