"""An archive of images as a file: read once from its beginning to its end, whatever it says, and nothing unpacked.

It is somebody's file. So every member is one of a kind that ``docker save`` and others write, with a name that stays
inside, and its checksum is taken from its bytes, never from its name.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol, cast

from hostwright.roles import InputError, short, shown_bytes
from hostwright.standard.roles.container.images.archives.names import (
    NoArchive,
    attributes,
    inside,
    linked,
    whole_number,
)

MOST_MEMBERS = 20_000  #: our choice, as all of these: an image has at most 127 layers
MOST_HEADER_BYTES = 64 * 1024  #: of a name, or of the attributes before a member
MOST_DOCUMENT_BYTES = 4 << 20  #: of one JSON file
MOST_DOCUMENTS_BYTES = 64 << 20
MOST_TIMES = 200  #: what a compressed file unpacks to, in times its size; images of people are below 10
SPARED_BYTES = 1 << 30  #: unpacked, whatever the size
_BLOCK = 512
_READ_BYTES = 1 << 20
_PIECE_BYTES = 16 << 10
DAMAGED = "gzip, but damaged"
_GZIP = b"\x1f\x8b"
#: compressions that are not unpacked here; of a layer, Docker does it, zstd from version 23 on
_OTHERWISE = {b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz"}


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """A file in an archive. ``inner`` is the checksum of what it unpacks to: its own where it is not compressed, empty
    where that cannot be told here. ``text`` is its content where it may be a JSON document."""

    sha256: str
    size: int
    inner: str
    unpacked: int
    text: bytes = b""
    packed: str = ""  #: the compression, where it cannot be unpacked here


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive that was read whole."""

    path: Path
    sha256: str
    size: int
    packed: bool  #: by gzip
    end: int  #: how many bytes of it, unpacked, its members are
    parts: Mapping[str, ArchivedFile]
    links: Mapping[str, str]  #: a layer that was saved under another name: that name


def read_archive(path: Path, shown: Path | None = None) -> Archive:
    """Read an archive, which messages call ``shown``. Raises ``InputError`` for a file that is none, is damaged, or
    holds what no image needs."""
    place = str(shown or path)
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            return _Reading(file, size).archive(path)
    except (NoArchive, tarfile.TarError, zlib.error, EOFError, gzip.BadGzipFile) as error:
        reason = str(error) if isinstance(error, NoArchive) else f"it is damaged ({short(str(error))})"
        raise InputError(f"this is no archive of images: {reason}", place) from error
    except OSError as error:
        raise InputError(f"it cannot be read: {os.strerror(error.errno or 0)}", place) from error


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Hashed:
    """A file whose checksum is taken while it is read."""

    def __init__(self, file: IO[bytes]):
        self._file, self.sum = file, hashlib.sha256()

    def read(self, size: int = _READ_BYTES) -> bytes:
        """The next bytes."""
        data = self._file.read(size)
        self.sum.update(data)
        return data


@dataclass(slots=True)
class _Ahead:
    """What headers before a member say of it: a name or target that is too long for its own, or its size."""

    name: str = ""
    target: str = ""
    size: int | None = None
    attributes: str = ""  #: whether a pax header was among them

    def say(self, field: str, value: str | int) -> None:
        """Take a value. Raises ``NoArchive`` for a second one: programs disagree on which of them counts."""
        if getattr(self, field) not in ("", None):
            raise NoArchive(f"a header of it says the {field} of a member twice")
        setattr(self, field, value)


@dataclass(slots=True)
class _Found:
    parts: dict[str, ArchivedFile] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    kept: int = 0

    def __len__(self) -> int:
        return len(self.parts) + len(self.links) + len(self.folders)


class _Reading:
    """One archive while it is read."""

    def __init__(self, file: IO[bytes], size: int):
        self._hashed, self._size = _Hashed(file), size
        start = file.read(_BLOCK)
        if packed := _compression(start):
            raise NoArchive(f"it is compressed with {packed}: unpack it, or compress it with gzip")
        self._packed = start.startswith(_GZIP)
        file.seek(0)
        self._source: _Readable = (
            gzip.GzipFile(fileobj=cast("IO[bytes]", self._hashed), mode="rb") if self._packed else self._hashed
        )
        self._most = SPARED_BYTES + MOST_TIMES * size
        self._position = 0
        self._inner = 0  #: bytes that compressed members unpacked to
        self._found = _Found()

    def archive(self, path: Path) -> Archive:
        """All of it."""
        end = self._members()
        while rest := self._some(_READ_BYTES):
            if rest.strip(b"\0"):
                raise NoArchive("more follows its end")
        while self._hashed.read():
            pass  # for the checksum of the file
        found = self._found
        links = {name: target for name, target in found.links.items() if target in found.parts}
        return Archive(path, self._hashed.sum.hexdigest(), self._size, self._packed, end, found.parts, links)

    def _members(self) -> int:
        """Read all members; where they end."""
        ahead, headers = _Ahead(), 0
        while True:
            start = self._position
            block = self._exactly(_BLOCK)
            if not block.strip(b"\0"):
                return start
            header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
            _agreed(block)
            headers += 1
            if headers > 2 * MOST_MEMBERS or len(self._found) > MOST_MEMBERS:
                raise NoArchive(f"it has more than {MOST_MEMBERS:,} members")
            if header.size < 0:
                raise NoArchive("a member has a negative size")
            if header.type in (b"x", b"g", b"L", b"K"):
                self._read_ahead(header, ahead)
                continue
            self._member(header, ahead)
            ahead = _Ahead()

    def _read_ahead(self, header: tarfile.TarInfo, ahead: _Ahead) -> None:
        """A header about the member after it."""
        if header.size > MOST_HEADER_BYTES:
            raise NoArchive("a header of it is longer than any name or attribute")
        data = self._exactly(header.size)
        self._exactly(-header.size % _BLOCK)
        if header.type in (b"L", b"K"):
            field = "name" if header.type == b"L" else "target"
            ahead.say(field, data.rstrip(b"\0").decode("utf-8", "surrogateescape"))
            return
        for key, value in attributes(data):
            if key in ("path", "linkpath", "size") and header.type == b"g":
                raise NoArchive(f"it says one {key} for all members")
            if key.startswith("GNU.sparse"):
                raise NoArchive("it has a file with holes")
            if key == "path":
                ahead.say("name", value)
            elif key == "linkpath":
                ahead.say("target", value)
            elif key == "size":
                ahead.say("size", whole_number(value))
        if header.type == b"x":
            ahead.say("attributes", "given")

    def _member(self, header: tarfile.TarInfo, ahead: _Ahead) -> None:
        given = ahead.name or header.name
        name = inside(given)
        found = self._found
        plain = header.type in (tarfile.REGTYPE, tarfile.AREGTYPE)
        if given.endswith("/") if plain else header.size or ahead.size:
            raise NoArchive(f"{short(name)!r} has content that not all programs take for a file's")
        if header.type == tarfile.DIRTYPE:
            found.folders.add(name)
            return
        if name in found.parts or name in found.links or not name:
            raise NoArchive(f"{short(name)!r} is in it twice" if name else "a member has no name")
        if header.type == tarfile.SYMTYPE:
            found.links[name] = linked(name, ahead.target or header.linkname)
            return
        if header.type == tarfile.LNKTYPE:  # another name of a file before it; its target is a name from the top
            target = inside(ahead.target or header.linkname)
            if target not in found.parts:
                raise NoArchive(f"{short(name)!r} is a hard link to {short(target)!r}, and that is no file before it")
            found.parts[name] = found.parts[target]
            return
        if not plain:
            raise NoArchive(f"{short(name)!r} is neither a file nor a directory")
        size = header.size if ahead.size is None else ahead.size
        found.parts[name] = self._part(size)
        self._exactly(-size % _BLOCK)

    def _part(self, size: int) -> ArchivedFile:
        """The content of a member, of which only what may be a JSON document is kept."""
        outer, unpacking, text, packed, inner = hashlib.sha256(), None, b"", "", ""
        left = size
        while left:
            data = self._some(min(left, _READ_BYTES))
            if not data:
                raise NoArchive("it ends in the middle of a file")
            if left == size:
                unpacking = _Unpacking(self._room) if data[:2] == _GZIP else None
                text = data if self._keeps(data, size) else b""
                packed = _compression(data)
            elif text:
                text += data
            left -= len(data)
            outer.update(data)
            try:
                if unpacking:
                    unpacking.feed(data)
                    inner = "" if left else unpacking.end()
            except (zlib.error, EOFError):  # which file it is, its checksum will tell
                unpacking, packed = None, DAMAGED
        if unpacking:
            return ArchivedFile(outer.hexdigest(), size, inner, unpacking.size)
        self._found.kept += len(text)
        return ArchivedFile(outer.hexdigest(), size, "" if packed else outer.hexdigest(), size, text, packed)

    def _keeps(self, start: bytes, size: int) -> bool:
        fits = size <= MOST_DOCUMENT_BYTES and self._found.kept + size <= MOST_DOCUMENTS_BYTES
        return fits and start.lstrip()[:1] in (b"{", b"[")

    def _room(self, size: int) -> None:
        """Count what was unpacked. Raises ``NoArchive``: a few bytes that unpack to a disk's are no image."""
        self._inner += size
        if self._position + self._inner > self._most:
            raise NoArchive(f"it unpacks to more than {shown_bytes(self._most)}")

    def _some(self, size: int) -> bytes:
        data = self._source.read(size)
        self._position += len(data)
        self._room(0)
        return data

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._some(size - len(data))
            if not more:
                raise NoArchive("it ends too early")
            data += more
        return data


def _agreed(block: bytes) -> None:
    """Raise ``NoArchive`` for a header that Python and Go, in which Docker is written, read as different members."""
    name, kind, magic, prefix = block[:100].rstrip(b"\0"), block[156:157], block[257:265], block[345:500]
    if kind == tarfile.AREGTYPE and name.endswith(b"/"):
        raise NoArchive("a member is a directory by its name alone")
    if prefix.strip(b"\0") and (magic != b"ustar\x0000" or block[508:512] == b"tar\0"):
        raise NoArchive("a member's name has a part that not all programs read")


def _compression(start: bytes) -> str:
    if start[257:262] == b"ustar":  # a tar archive begins with a name, which may be any
        return ""
    return next((name for magic, name in _OTHERWISE.items() if start.startswith(magic)), "")


class _Unpacking:
    """A compressed member, whose content is counted and its checksum taken, piece by piece."""

    def __init__(self, room: _Room):
        self._room, self._sum, self.size = room, hashlib.sha256(), 0
        self._unpack = zlib.decompressobj(31)

    def feed(self, data: bytes) -> None:
        """The next bytes. In small pieces: what follows the end of a stream is copied, and many streams may follow."""
        for start in range(0, len(data), _PIECE_BYTES):
            piece = data[start : start + _PIECE_BYTES]
            while piece:
                if self._unpack.eof:
                    self._unpack = zlib.decompressobj(31)
                self._take(piece)
                piece = self._unpack.unused_data if self._unpack.eof else self._unpack.unconsumed_tail

    def _take(self, packed: bytes) -> int:
        data = self._unpack.decompress(packed, _READ_BYTES)
        self._room(len(data))
        self.size += len(data)
        self._sum.update(data)
        return len(data)

    def end(self) -> str:
        """The checksum of all of it. Raises ``EOFError`` where the end is missing."""
        while not self._unpack.eof and self._take(b""):
            pass
        if not self._unpack.eof:
            raise EOFError
        return self._sum.hexdigest()


class _Room(Protocol):
    def __call__(self, size: int, /) -> None: ...
