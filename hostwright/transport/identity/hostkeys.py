"""Host keys: which ones are known, whether a server shows one of them, and recording a new one.

A ``known_hosts`` file is split into lines once; names are looked up in an index, and a key is decoded only if its
line is for the host in question (paramiko decodes all: 5 s for 10,000 lines).
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import hmac
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from hostwright.common.errors import Unreachable
from hostwright.common.quoting import sh
from hostwright.transport.identity.keys import HostKey, fingerprint

if TYPE_CHECKING:
    from hostwright.transport.cache import FileCache

SSH_PORT = 22
_MARKERS = ("@revoked", "@cert-authority")


@dataclass(frozen=True, slots=True)
class KnownHost:
    """One line of a ``known_hosts`` file: ``names`` as written, the key's type and its base64."""

    path: Path
    number: int
    marker: str
    names: str
    key_type: str
    encoded: str

    @property
    def where(self) -> str:
        """``file:line``, for sentences."""
        return f"{self.path}:{self.number}"

    @property
    def blob(self) -> bytes:
        """The key itself; empty if the line is damaged, so it equals no key."""
        try:
            return base64.b64decode(self.encoded, validate=True)
        except binascii.Error:
            return b""

    @property
    def fingerprint(self) -> str:
        """The key's fingerprint; that of an empty text if the line is damaged."""
        return fingerprint(self.blob)


class HostKeyMismatch(Unreachable):
    """The host shows another key than the known one; both fingerprints are in the sentence.

    ``offered`` is the key that it shows, ``known`` the recorded one. If a jump host on the way shows another key,
    nothing can be said about the host itself: ``offered`` is ``None``.
    """

    def __init__(
        self,
        host: str,
        message: str,
        *,
        passing: bool = False,
        offered: HostKey | None = None,
        known: tuple[KnownHost, ...] = (),
    ):
        super().__init__(host, message, passing=passing)
        self.offered = offered
        self.known = known


@dataclass(frozen=True, slots=True)
class KnownHosts:
    """The lines of one file, indexed by the ways of looking up their names."""

    plain: dict[str, list[KnownHost]] = field(default_factory=dict)
    patterns: list[KnownHost] = field(default_factory=list)
    hashed: list[tuple[bytes, bytes, KnownHost]] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> KnownHosts:
        """Read a file. Raises ``OSError``."""
        return cls.parse(path, path.read_bytes())

    @classmethod
    def parse(cls, path: Path, content: bytes) -> KnownHosts:
        """The entries of a file's content. Invalid lines are ignored, as by OpenSSH."""
        known = cls()
        for number, line in enumerate(content.decode("utf-8", errors="replace").split("\n"), 1):
            entry = _entry(path, number, line)
            if entry:
                known._add(entry)
        return known

    def _add(self, entry: KnownHost) -> None:
        if entry.names.startswith("|"):
            salted = _salted(entry.names)
            if salted:
                self.hashed.append((*salted, entry))
        elif any(sign in entry.names for sign in "*?!"):
            self.patterns.append(entry)
        else:
            for name in entry.names.lower().split(","):
                self.plain.setdefault(name, []).append(entry)

    def lookup(self, name: str) -> Iterator[KnownHost]:
        """The lines for a name in the form of these files (``host``, or ``[host]:port``), in lower case."""
        yield from self.plain.get(name, ())
        yield from (entry for entry in self.patterns if _matches(entry.names.lower(), name))
        data = name.encode()
        for salt, digest, entry in self.hashed:
            if hmac.digest(salt, data, "sha1") == digest:
                yield entry


def _entry(path: Path, number: int, line: str) -> KnownHost | None:
    fields = line.split(None, 4)
    marker = fields.pop(0) if fields and fields[0] in _MARKERS else ""
    if len(fields) < 3 or fields[0].startswith(("#", "@")):
        return None
    return KnownHost(path, number, marker, fields[0], fields[1], fields[2])


def _salted(names: str) -> tuple[bytes, bytes] | None:
    try:
        _, kind, salt, digest = names.split("|")
        return (base64.b64decode(salt), base64.b64decode(digest)) if kind == "1" else None
    except ValueError:
        return None


def _matches(patterns: str, name: str) -> bool:
    """Whether a comma-separated list of ``*``/``?`` patterns matches ``name``; a matching ``!pattern`` excludes it."""
    matched = False
    for pattern in patterns.split(","):
        regex = "".join({"*": ".*", "?": "."}.get(sign, re.escape(sign)) for sign in pattern.removeprefix("!"))
        if re.fullmatch(regex, name, re.DOTALL):
            if pattern.startswith("!"):
                return False
            matched = True
    return matched


def entry_name(host: str, port: int) -> str:
    """The name of a server in a ``known_hosts`` file."""
    return host.lower() if port == SSH_PORT else f"[{host.lower()}]:{port}"


@dataclass(frozen=True, slots=True)
class Known:
    """The lines about one server. ``portless`` are those for its name without the port: they suffice to accept a key
    (as in OpenSSH), but not to call it changed."""

    name: str
    entries: tuple[KnownHost, ...] = ()
    portless: tuple[KnownHost, ...] = ()

    @property
    def key_types(self) -> tuple[str, ...]:
        """The types of its known keys: request these first, or the server may show an unknown one."""
        keys = [entry for entry in (*self.entries, *self.portless) if not entry.marker]
        return tuple(dict.fromkeys(entry.key_type for entry in keys))

    def accepts(self, blob: bytes) -> bool:
        """Whether this key is known for the server."""
        return any(entry.blob == blob for entry in (*self.entries, *self.portless) if not entry.marker)

    def revoked(self, blob: bytes) -> KnownHost | None:
        """The line that revokes this key, if one does."""
        marked = (entry for entry in (*self.entries, *self.portless) if entry.marker == "@revoked")
        return next((entry for entry in marked if entry.blob == blob), None)

    def expected(self, key_type: str) -> KnownHost | None:
        """The line that a different key contradicts; a line with a key of the same type comes first."""
        keys = [entry for entry in self.entries if not entry.marker]
        return next((entry for entry in keys if entry.key_type == key_type), keys[0] if keys else None)

    @property
    def by_authority(self) -> KnownHost | None:
        """A ``@cert-authority`` line for the server; paramiko cannot check host certificates."""
        return next((entry for entry in self.entries if entry.marker == "@cert-authority"), None)


def find(host: str, port: int, paths: Iterable[Path], files: FileCache[KnownHosts]) -> Known:
    """Look a server up in several files; missing files are ignored."""
    name = entry_name(host, port)
    entries: list[KnownHost] = []
    portless: tuple[KnownHost, ...] = ()
    parsed: list[KnownHosts] = []
    for path in paths:
        try:
            known = files.get(path)
        except FileNotFoundError:
            continue
        parsed.append(known)
        entries += known.lookup(name)
    if port != SSH_PORT and not entries:
        portless = tuple(entry for known in parsed for entry in known.lookup(host.lower()))
    return Known(name, tuple(entries), portless)


def check(host: str, place: str, known: Known, key: HostKey, *, jump: bool) -> bool:
    """Whether the key that a server shows is known. ``place`` is the server's ``address:port``.

    Raises ``HostKeyMismatch`` for a revoked key, or one that differs from the recorded key.
    """
    shown = f"{key.key_type} {key.fingerprint}"
    revoked = known.revoked(key.blob)
    if revoked:
        sentence = f"{place} shows the key {shown}, which {revoked.where} revokes"
        raise HostKeyMismatch(host, sentence, offered=key, known=known.entries)
    if known.accepts(key.blob):
        return True
    expected = known.expected(key.key_type)
    if not expected:
        return False
    way = sh("ssh-keygen -R %s -f %s", known.name, expected.path) if jump else sh("invoke trust --hosts %s", host)
    raise HostKeyMismatch(
        host,
        f"the host key of {place} changed: it shows {shown}, but {expected.where} has {expected.key_type} "
        f"{expected.fingerprint}. If the host was reinstalled, compare the new fingerprint on its console, then: "
        f"{way}; else someone may be between you and the host",
        offered=key,
        known=known.entries,
    )


@contextmanager
def locked(path: Path) -> Iterator[BinaryIO]:
    """A file, opened for reading and appending, and locked against other processes of ours; created with mode 0600 if
    missing. Raises ``OSError``."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not _is_still(path, file):
                continue  # while we waited for the lock, the file was replaced
            yield file
            return


def _is_still(path: Path, file: BinaryIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def remember(path: Path, name: str, key_type: str, blob: bytes) -> None:
    """Append a key to a file (created with mode 0600 if missing) unless another process just did.

    Raises ``OSError``.
    """
    with locked(path) as file:
        content = file.read()
        line = f"{name} {key_type} {base64.b64encode(blob).decode()}\n".encode()
        if line in content.splitlines(keepends=True):
            return
        file.write(line if not content or content.endswith(b"\n") else b"\n" + line)
        file.flush()
        os.fsync(file.fileno())
