"""The content of a ``known_hosts`` file with one server's keys replaced: text in, text out, no files are opened.

Only the lines of exactly this server change. Everything else in the file stays as it is, byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from hostwright.transport.identity.hashednames import hashed_name
from hostwright.transport.identity.hostkeys import KnownHost, KnownHosts
from hostwright.transport.identity.keys import HostKey

_NAMES = re.compile(r"(\s*)(\S+)(.*)", re.DOTALL)
_UNFIT = re.compile(r"[\s,*?!|#\"]|^@")  #: characters that would make several names, or none, in such a file


@dataclass(frozen=True, slots=True)
class Edit:
    """A file's new content, and the lines removed from it. ``in_the_way`` are lines for many hosts (a pattern) with a
    different key: they cannot be changed for one host alone."""

    content: bytes
    gone: tuple[KnownHost, ...]
    in_the_way: tuple[KnownHost, ...] = ()


def fits(name: str) -> bool:
    """Whether a server's name can be written into such a file and mean that server alone."""
    return bool(name) and not _UNFIT.search(name)


def contradicting(path: Path, content: bytes, name: str, keys: Collection[HostKey]) -> tuple[KnownHost, ...]:
    """The lines that give a server a key other than ``keys``. Marked lines (``@revoked``) do not count."""
    wanted = {key.blob for key in keys}
    entries = KnownHosts.parse(path, content).lookup(name)
    unmarked = {entry.number: entry for entry in entries if not entry.marker and entry.blob not in wanted}
    return tuple(unmarked[number] for number in sorted(unmarked))


def without(path: Path, content: bytes, name: str, keys: Collection[HostKey]) -> Edit:
    """The file without the lines that give the server a key other than ``keys``."""
    gone: list[KnownHost] = []
    in_the_way: list[KnownHost] = []
    lines: list[bytes | None] = [*content.split(b"\n")]
    for entry in contradicting(path, content, name, keys):
        if _by_pattern(entry, name):
            in_the_way.append(entry)
        else:
            gone.append(entry)
            line = lines[entry.number - 1] or b""
            lines[entry.number - 1] = _for_others(line, name)
    kept = b"\n".join(line for line in lines if line is not None)
    return Edit(kept, tuple(gone), tuple(in_the_way))


def _other_names(names: str, name: str) -> str:
    """The names of a line without this one; empty if the line is then for no host at all.

    No name begins with one of ``|#@``; at the beginning of a line they would give it another meaning.
    """
    if names.startswith("|"):
        return ""
    rest = [other for other in names.split(",") if other.lower() != name and not other.startswith(("|", "#", "@"))]
    return ",".join(rest) if any(other and not other.startswith("!") for other in rest) else ""


def is_for(entry: KnownHost, name: str, names: str = "") -> bool:
    """Whether a line is for a server; with ``names``, whether it would be with these names."""
    line = f"{names or entry.names} {entry.key_type} {entry.encoded}".encode()
    return any(KnownHosts.parse(entry.path, line).lookup(name))


def _by_pattern(entry: KnownHost, name: str) -> bool:
    """Whether a line is for the server even without its name, by a pattern beside it."""
    rest = _other_names(entry.names, name)
    return bool(rest) and is_for(entry, name, rest)


def _for_others(line: bytes, name: str) -> bytes | None:
    """The line reduced to the other hosts that it names, otherwise unchanged; ``None`` if there are none.

    Bytes that are not UTF-8 are preserved.
    """
    text = line.decode("utf-8", errors="surrogateescape")
    match = _NAMES.fullmatch(text)
    rest = _other_names(match[2], name) if match else ""
    return f"{match[1]}{rest}{match[3]}".encode("utf-8", errors="surrogateescape") if match and rest else None


def having(path: Path, edit: Edit, name: str, keys: Sequence[HostKey]) -> bytes:
    """The content with a line for each key that the server does not have there yet.

    The name is hashed if a removed line had it hashed: somebody did not want it to be readable.
    """
    known = {entry.blob for entry in KnownHosts.parse(path, edit.content).lookup(name) if not entry.marker}
    hide = any(entry.names.startswith("|") for entry in edit.gone)
    fresh = [key for key in dict.fromkeys(keys) if key.blob not in known]
    added = "".join(f"{hashed_name(name) if hide else name} {key.line}\n" for key in fresh)
    between = b"\n" if added and edit.content and not edit.content.endswith(b"\n") else b""
    return edit.content + between + added.encode()
