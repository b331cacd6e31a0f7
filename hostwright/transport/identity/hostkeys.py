"""Known host keys: lookup in ``known_hosts`` files, comparison with a server's key, and recording of new keys.

Reading a file only splits it into lines and indexes the names. A key is decoded only if the line is for the requested
host, because decoding 10,000 keys takes 5 s.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from hostwright.common.errors import Unreachable
from hostwright.transport.identity import certificates
from hostwright.transport.identity.hashednames import HashedName, hashed_name, named
from hostwright.transport.identity.keys import HostKey, fingerprint

if TYPE_CHECKING:
    from hostwright.transport.login.cache import FileCache

SSH_PORT = 22
ANOTHER_KNOWN_HOSTS = "set another file (hostwright_known_hosts in the inventory)"
REVOKED, AUTHORITY = _MARKERS = ("@revoked", "@cert-authority")
_LONGEST_PATTERN = 1022  #: maximum number of bytes of a host name pattern in OpenSSH
_IGNORED = dict.fromkeys(map(ord, "\r\v\f"))  #: characters that are removed from a base64 key before decoding
_PLAIN_TYPES = {"rsa-sha2-256": "ssh-rsa", "rsa-sha2-512": "ssh-rsa"}


def _type_of(blob: bytes) -> str:
    return blob[4 : 4 + int.from_bytes(blob[:4], "big")].decode("ascii", errors="replace")


@dataclass(frozen=True, slots=True)
class KnownHost:
    """One line of a ``known_hosts`` file: ``names`` as written, the key's type, and the key in base64."""

    path: Path
    number: int
    marker: str
    names: str
    key_type: str
    encoded: str

    @property
    def where(self) -> str:
        """``file:line``, for messages."""
        return f"{self.path}:{self.number}"

    @property
    def blob(self) -> bytes:
        """The key's bytes; empty for a damaged line."""
        try:
            return base64.b64decode(self.encoded.translate(_IGNORED), validate=True)
        except (binascii.Error, ValueError):
            return b""

    def is_for(self, blob: bytes) -> bool:
        """Whether the line has the key ``blob``, and names the type of this key."""
        return self.blob == blob and _type_of(blob) == _PLAIN_TYPES.get(self.key_type, self.key_type)

    @property
    def whole(self) -> bool:
        """Whether the line has a valid key, of the type that the line names."""
        blob = self.blob
        return bool(blob) and self.is_for(blob)

    @property
    def fingerprint(self) -> str:
        """The key's fingerprint, or the fingerprint of an empty key for a damaged line."""
        return fingerprint(self.blob)


class HostKeyMismatch(Unreachable):
    """The host presented a key that differs from the recorded key; the message contains both fingerprints.

    ``offered`` is the presented key, or ``None`` for a jump host. ``known`` are the lines with recorded keys.
    """

    def __init__(
        self,
        host: str,
        message: str,
        *,
        passing: bool = False,
        lead: str = "",
        offered: HostKey | None = None,
        known: tuple[KnownHost, ...] = (),
    ):
        super().__init__(host, message, passing=passing, lead=lead)
        self.offered = offered
        self.known = known


@dataclass(frozen=True, slots=True)
class KnownHosts:
    """The lines of one ``known_hosts`` file, in separate indexes for plain names, patterns and hashed names.

    ``found`` caches the lines with a matching hashed name.
    """

    plain: dict[str, list[KnownHost]] = field(default_factory=dict)
    patterns: list[KnownHost] = field(default_factory=list)
    hashed: list[tuple[HashedName, KnownHost]] = field(default_factory=list)
    found: dict[str, tuple[KnownHost, ...]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> KnownHosts:
        """Read a ``known_hosts`` file. Raises ``OSError`` if it cannot be read."""
        return cls.parse(path, path.read_bytes())

    @classmethod
    def parse(cls, path: Path, content: bytes) -> KnownHosts:
        """Parse ``content``, read from the ``known_hosts`` file ``path``. Invalid lines are ignored, as in OpenSSH."""
        known = cls()
        for number, line in enumerate(content.decode("utf-8", errors="replace").split("\n"), 1):
            entry = _entry(path, number, line)
            if entry:
                known._add(entry)
        return known

    def _add(self, entry: KnownHost) -> None:
        if entry.names.startswith("|"):
            hashed = HashedName.parse(entry.names)
            if hashed:
                self.hashed.append((hashed, entry))
        elif max(map(len, entry.names.encode().split(b","))) > _LONGEST_PATTERN:
            return
        elif any(sign in entry.names for sign in "*?!"):
            self.patterns.append(entry)
        else:
            for name in entry.names.lower().split(","):
                self.plain.setdefault(name, []).append(entry)

    def lookup(self, name: str) -> Iterator[KnownHost]:
        """Yield the lines for a lowercase name (``host`` or ``[host]:port``)."""
        yield from self.plain.get(name, ())
        yield from (entry for entry in self.patterns if _matches(entry.names.lower(), name))
        if name not in self.found:
            self.found[name] = named(name, self.hashed)
        yield from self.found[name]


def _entry(path: Path, number: int, line: str) -> KnownHost | None:
    fields = re.split("[ \t]+", line.partition("\0")[0].strip(" \t"), maxsplit=4)
    marker = fields.pop(0) if fields[0] in _MARKERS else ""
    if len(fields) < 3 or fields[0].startswith(("#", "@")):
        return None
    return KnownHost(path, number, marker, fields[0], fields[1], fields[2])


def _matches(patterns: str, name: str) -> bool:
    """Return whether one of the comma-separated ``patterns`` matches ``name``. A matching ``!pattern`` excludes the
    name.
    """
    matched = False
    for pattern in patterns.split(","):
        regex = "".join({"*": ".*", "?": "."}.get(sign, re.escape(sign)) for sign in pattern.removeprefix("!"))
        if re.fullmatch(regex, name, re.DOTALL):
            if pattern.startswith("!"):
                return False
            matched = True
    return matched


def entry_name(host: str, port: int) -> str:
    """The name of the server at ``host`` and ``port`` in a ``known_hosts`` file."""
    return host.lower() if port == SSH_PORT else f"[{host.lower()}]:{port}"


@dataclass(frozen=True, slots=True)
class Known:
    """The ``known_hosts`` lines about one server.

    ``portless`` are lines for the server's name without the port. As in OpenSSH, a key from these lines is accepted,
    and a server with a different key counts as unknown, not as changed. ``others`` are lines of further files; only
    their revoked keys count.
    """

    name: str
    entries: tuple[KnownHost, ...] = ()
    portless: tuple[KnownHost, ...] = ()
    others: tuple[KnownHost, ...] = ()

    @property
    def key_types(self) -> tuple[str, ...]:
        """The types of the known keys, to prefer in the key exchange."""
        return tuple(dict.fromkeys(entry.key_type for entry in self.entries if not entry.marker and entry.whole))

    def expected(self, key_type: str) -> KnownHost | None:
        """Return the line with the key that the server should have presented, preferably of type ``key_type``."""
        return contradicting(self.entries, key_type)

    @property
    def by_authority(self) -> KnownHost | None:
        """The first ``@cert-authority`` line for the server, if any."""
        return next((entry for entry in (*self.entries, *self.portless) if entry.marker == AUTHORITY), None)


def has(entries: Iterable[KnownHost], blob: bytes, marker: str = "") -> bool:
    """Whether one of ``entries`` has both the key ``blob`` and ``marker``."""
    return any(entry.marker == marker and entry.is_for(blob) for entry in entries)


def contradicting(entries: Iterable[KnownHost], key_type: str) -> KnownHost | None:
    """Return the first of ``entries`` with a valid key, preferably of type ``key_type``."""
    keys = [entry for entry in entries if not entry.marker and entry.whole]
    return next((entry for entry in keys if entry.key_type == key_type), keys[0] if keys else None)


def revokes(entry: KnownHost, blobs: Iterable[bytes]) -> bool:
    """Return whether the ``@revoked`` line ``entry`` revokes one of the keys ``blobs``; for a certificate, its key
    counts.
    """
    blob = certificates.plain(entry.blob) if "-cert-" in entry.key_type else entry.blob
    return blob in blobs


def find(host: str, port: int, paths: Iterable[Path], files: FileCache[KnownHosts]) -> Known:
    """Return the lines about the server at ``host`` and ``port`` in the existing files among ``paths``."""
    return look_up(entry_name(host, port), "" if port == SSH_PORT else host.lower(), paths, files)


def look_up(
    name: str, portless: str, paths: Iterable[Path], files: FileCache[KnownHosts], others: Iterable[Path] = ()
) -> Known:
    """Return the lines about a server for ``name``, and for ``portless``, the name without a port.

    Missing files are ignored.
    """
    read = list(_existing(paths, files))
    return Known(
        name,
        tuple(entry for known in read for entry in known.lookup(name)),
        tuple(entry for known in read for entry in known.lookup(portless)) if portless else (),
        tuple(entry for known in _existing(others, files) for entry in known.lookup(name)),
    )


def _existing(paths: Iterable[Path], files: FileCache[KnownHosts]) -> Iterator[KnownHosts]:
    for path in paths:
        with suppress(FileNotFoundError):
            yield files.get(path)


@contextmanager
def locked(path: Path) -> Iterator[BinaryIO]:
    """Open the file ``path`` for reading and appending, locked against other Hostwright processes.

    A missing file is created with mode 0600. Raises ``OSError`` if it cannot be opened.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not _is_still(path, file):
                continue  # The lock is on an old file, because another process has replaced the file.
            yield file
            return


def _is_still(path: Path, file: BinaryIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def remember(path: Path, name: str, key_type: str, blob: bytes, *, hashed: bool = False) -> KnownHost | None:
    """Append a server's key to the ``known_hosts`` file ``path``, unless the file already has the key.

    If the file has a different key of the server ``name``, write nothing and return the line with that key. A missing
    file is created with mode 0600. Raises ``OSError`` if the file cannot be changed.
    """
    with locked(path) as file:
        content = file.read()
        entries = tuple(KnownHosts.parse(path, content).lookup(name))
        if has(entries, blob):
            return None
        other = contradicting(entries, key_type)
        if other:
            return other
        line = f"{hashed_name(name) if hashed else name} {key_type} {base64.b64encode(blob).decode()}\n".encode()
        os.write(file.fileno(), line if not content or content.endswith(b"\n") else b"\n" + line)
        os.fsync(file.fileno())
        return None
