"""Parser for the keys of a keyring and their expiry. Hosts have only ``gpgv`` or ``sqv``, and neither can list keys."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime

_KEY, _SUBKEY, _SIGNATURE = 6, 14, 2  #: tags of packets for keys, subkeys and signatures (RFC 4880, 4.3)
#: types of signatures that can limit a key's lifetime (RFC 4880, 5.2.1)
_BINDING = {0x10, 0x11, 0x12, 0x13, 0x18, 0x1F}
#: types of subpackets for key expiration, creation time and key flags (RFC 4880, 5.2.3.1)
_EXPIRES, _MADE, _FLAGS = 9, 2, 27
_SIGNS = 0x02  #: key flag of a key that may sign data (RFC 4880, 5.2.3.21)


def dearmored(key: bytes) -> bytes:
    """Binary content of a key file, ASCII-armored or not (RFC 4880, 6.2). Raises ``ValueError`` for damaged armor."""
    _, begin, rest = key.partition(b"-----BEGIN PGP PUBLIC KEY BLOCK-----")
    if not begin:
        return key
    lines = rest.partition(b"-----END")[0].replace(b"\r", b"").partition(b"\n\n")[2].splitlines()
    return base64.b64decode(b"".join(line for line in lines if not line.startswith(b"=")))


def fingerprints(ring: bytes) -> tuple[str, ...]:
    """Fingerprint of each primary key in a keyring (RFC 4880, 12.2).

    Raises ``ValueError`` for data that is not a keyring, and for keys of a version other than 4.
    """
    found = []
    for tag, body in _packets(ring):
        if tag == _KEY:
            if body[:1] != b"\x04":
                raise ValueError("the OpenPGP key version is not supported")
            named = hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body, usedforsecurity=False)
            found.append(named.hexdigest().upper())
    return tuple(found)


def expired_on(ring: bytes, now: datetime) -> datetime | None:
    """Time at which the last signing key of a keyring expired; ``None`` if a signing key is still valid.

    Raises ``ValueError`` if the keyring cannot be parsed.
    """
    try:
        ends = list(_ends(ring))
        if not ends or None in ends:
            return None
        last = datetime.fromtimestamp(max(end for end in ends if end is not None), UTC)
    # a damaged packet has a field that is too short, or a time out of range
    except (IndexError, OverflowError) as error:
        raise ValueError("the OpenPGP packet is damaged") from error
    return last if last <= now else None


def _ends(ring: bytes) -> Iterator[int | None]:
    """Yield the expiry of each signing key in seconds since the epoch; ``None`` for never. A subkey expires with its
    key.
    """
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
                raise ValueError("the OpenPGP key version is not supported")
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
    """Yield the tag and the body of each packet (RFC 4880, 4.2). Raises ``ValueError`` for data that is not packets."""
    at = 0
    while at < len(data):
        head = data[at]
        if not head & 0x80:
            raise ValueError("the data is not an OpenPGP packet")
        if head & 0x40:
            tag, (size, at) = head & 0x3F, _length(data, at + 1)
        else:
            tag, octets = head >> 2 & 0x0F, (1, 2, 4, 0)[head & 3]
            size, at = int.from_bytes(data[at + 1 : at + 1 + octets], "big"), at + 1 + octets
            if not octets:
                raise ValueError("the OpenPGP packet has an indeterminate length")
        if at + size > len(data):
            raise ValueError("the OpenPGP packet is truncated")
        yield tag, data[at : at + size]
        at += size


def _length(data: bytes, at: int) -> tuple[int, int]:
    first = data[at] if at < len(data) else 255
    if first < 192:
        return first, at + 1
    if first < 224:
        return (first - 192 << 8) + int.from_bytes(data[at + 1 : at + 2], "big") + 192, at + 2
    if first < 255:
        raise ValueError("an OpenPGP packet with a partial length is not supported")
    return int.from_bytes(data[at + 1 : at + 5], "big"), at + 5


def _subpackets(signature: bytes) -> Iterator[tuple[int, bytes]]:
    octets = 4 if signature[0] == 6 else 2
    size = int.from_bytes(signature[4 : 4 + octets], "big")
    data = signature[4 + octets : 4 + octets + size]
    at = 0
    while at < len(data):
        length, at = _length(data, at)
        if length:
            yield data[at] & 0x7F, data[at + 1 : at + length]
        at += max(length, 1)
