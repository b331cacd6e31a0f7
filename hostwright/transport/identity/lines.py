"""Replaces one server's keys in the content of a ``known_hosts`` file, without file access.

Only lines and names of exactly this server change.
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
_UNFIT = re.compile(r"[\s,*?!|#\"]|^@")  #: characters that have a special meaning in a host name of ``known_hosts``


@dataclass(frozen=True, slots=True)
class Edit:
    """The new content of a ``known_hosts`` file, and the lines that were removed from it (``gone``).

    ``in_the_way`` are lines with a different key that match many hosts, so they cannot be changed for one host.
    """

    content: bytes
    gone: tuple[KnownHost, ...]
    in_the_way: tuple[KnownHost, ...] = ()


def fits(name: str) -> bool:
    """Return whether ``name`` in a ``known_hosts`` file would match only the server with this name."""
    return bool(name) and not _UNFIT.search(name)


def contradicting(path: Path, content: bytes, name: str, keys: Collection[HostKey]) -> tuple[KnownHost, ...]:
    """Return the lines of ``content`` for the server ``name`` that have a key other than ``keys``.

    Lines with a marker (``@revoked``) are left out. ``path`` is the file of the lines.
    """
    wanted = {key.blob for key in keys}
    entries = KnownHosts.parse(path, content).lookup(name)
    unmarked = {entry.number: entry for entry in entries if not entry.marker and entry.blob not in wanted}
    return tuple(unmarked[number] for number in sorted(unmarked))


def without(path: Path, content: bytes, name: str, keys: Collection[HostKey]) -> Edit:
    """Return ``content`` without the lines for the server ``name`` that have a key other than ``keys``."""
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
    """Return ``names`` without ``name``; empty if no name without ``!`` remains.

    Names that begin with ``|``, ``#`` or ``@`` are dropped, because these characters have another meaning at the start
    of a line.
    """
    if names.startswith("|"):
        return ""
    rest = [other for other in names.split(",") if other.lower() != name and not other.startswith(("|", "#", "@"))]
    return ",".join(rest) if any(other and not other.startswith("!") for other in rest) else ""


def is_for(entry: KnownHost, name: str, names: str = "") -> bool:
    """Whether the line ``entry`` applies to the server ``name``. ``names`` replaces the names in the line."""
    line = f"{names or entry.names} {entry.key_type} {entry.encoded}".encode()
    return any(KnownHosts.parse(entry.path, line).lookup(name))


def _by_pattern(entry: KnownHost, name: str) -> bool:
    rest = _other_names(entry.names, name)
    return bool(rest) and is_for(entry, name, rest)


def _for_others(line: bytes, name: str) -> bytes | None:
    """Return ``line`` without ``name``, or ``None`` if no other name remains. Bytes that are not UTF-8 are
    preserved.
    """
    text = line.decode("utf-8", errors="surrogateescape")
    match = _NAMES.fullmatch(text)
    rest = _other_names(match[2], name) if match else ""
    return f"{match[1]}{rest}{match[3]}".encode("utf-8", errors="surrogateescape") if match and rest else None


def having(path: Path, edit: Edit, name: str, keys: Sequence[HostKey]) -> bytes:
    """Return the content of ``edit`` with a new line for each of ``keys`` that the server ``name`` lacks.

    The name in a new line is hashed if a removed line had a hashed name.
    """
    known = {entry.blob for entry in KnownHosts.parse(path, edit.content).lookup(name) if not entry.marker}
    hide = any(entry.names.startswith("|") for entry in edit.gone)
    fresh = [key for key in dict.fromkeys(keys) if key.blob not in known]
    added = "".join(f"{hashed_name(name) if hide else name} {key.line}\n" for key in fresh)
    between = b"\n" if added and edit.content and not edit.content.endswith(b"\n") else b""
    return edit.content + between + added.encode()
