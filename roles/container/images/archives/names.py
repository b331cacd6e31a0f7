"""What stands in the headers of an archive: names, links, numbers and attributes. None of it leads out of it."""

from __future__ import annotations

import posixpath

from hostwright.roles import short, whole


class NoArchive(ValueError):
    """What is wrong with an archive, as a sentence without its name."""


def attributes(data: bytes) -> list[tuple[str, str]]:
    """The records of a pax header: ``LENGTH KEY=VALUE`` with a newline, one after the other."""
    records, start = [], 0
    while start < len(data):
        blank = data.find(b" ", start, start + 8)
        length = whole_number(data[start:blank].decode("ascii", "replace")) if blank > 0 else 0
        record = data[blank + 1 : start + length]
        key, equals, value = record.rstrip(b"\n").partition(b"=")
        if not (length > blank - start and start + length <= len(data) and record.endswith(b"\n") and equals):
            raise NoArchive("a header of it cannot be read")
        records.append((key.decode("utf-8", "replace"), value.decode("utf-8", "surrogateescape")))
        start += length
    return records


def whole_number(text: str) -> int:
    """A number in a header."""
    number = whole(text)
    if number is None:
        raise NoArchive("a number in it cannot be read")
    return number


def inside(name: str) -> str:
    """A member's name without ``./`` before it; one that leads out of the archive is refused."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or not name.isprintable() or len(name) > 512:
        raise NoArchive(f"{short(name)!r} leads out of it")
    return "/".join(parts)


def linked(name: str, target: str) -> str:
    """Where a link leads: another file of the archive, and only for a layer, which Docker and skopeo save once."""
    place = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
    if not name.endswith("/layer.tar") or target.startswith("/") or place.startswith("..") or not place.isprintable():
        raise NoArchive(f"{short(name)!r} is a link to {short(target)!r}, and only a layer may be one, inside it")
    return place
