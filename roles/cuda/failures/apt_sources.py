"""apt's sources that mention CUDA, as apt reads them, and the keyrings that hold NVIDIA's two keys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hostwright.audit.judging.look import Unread
from hostwright.common.quoting import sh_file
from hostwright.plan.model import Probe
from hostwright.resources.packages.repositories import DEARMOR

if TYPE_CHECKING:
    from hostwright.audit.judging.look import Look

OLD_KEY = "F60F4B3D7FA2AF80"  #: until April 2022, and in every local repository of 11.2
NEW_KEY = "A4B469963BF863CC"  #: since then, for the network repository
TRUSTED = "/etc/apt/trusted.gpg"  #: apt-key's keyring, used with those in TRUSTED.d for every source that names none

#: ``source FILE NUMBER LINE`` of each list that mentions CUDA, and ``key FILE old|new|ID`` of keyrings.
SOURCES = Probe(f"{DEARMOR}\n" + sh_file(__file__, "apt_sources.sh"), root=True)

_LIST_LINE = re.compile(r"\s*deb(?:-src)?\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)")
_CREDENTIALS = re.compile(r"//[^/@\s]+@")
_KEY_ID = re.compile(r"[0-9A-F]{16}")
_FIELD = re.compile(r"([A-Za-z-]+)\s*:\s*(.*)")


@dataclass(frozen=True, slots=True)
class Source:
    """A repository that apt reads, and its line. ``signed_by`` are keyrings, or whatever else it names."""

    file: str
    line: int
    uri: str
    suite: str
    signed_by: tuple[str, ...]
    text: str

    @property
    def local(self) -> bool:
        """Whether it is a directory on the host."""
        return self.uri.startswith(("file:", "copy:"))

    @property
    def path(self) -> str:
        """The path in its address."""
        return _path(self.uri).rstrip("/")

    @property
    def place(self) -> tuple[str, str]:
        """Its identity: apt takes sources for the same repository if this is equal."""
        address = f"file:{self.path}" if self.local else self.uri.rstrip("/").lower()
        return address, self.suite.strip("/")

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {_CREDENTIALS.sub('//', self.text.strip())}"


def sources(look: Look) -> tuple[Source, ...]:
    """The enabled repositories in apt's lists that mention CUDA. Raises ``Unread``."""
    rows = [row for row in _rows(look, "source", 4) if row[2].isascii() and row[2].isdigit() and len(row[2]) < 9]
    repositories: list[Source] = []
    for file, lines in groupby(rows, key=lambda row: row[1]):
        numbered = [(int(row[2]), row[3]) for row in lines]
        repositories += _stanzas(file, numbered) if file.endswith(".sources") else _lines(file, numbered)
    return tuple(repositories)


def keys(look: Look) -> Mapping[str, frozenset[str]]:
    """The keyrings by path, with NVIDIA's two keys where they hold them; of apt-key's, all keys. Raises ``Unread``."""
    by_ring: dict[str, frozenset[str]] = {}
    for _, ring, which in _rows(look, "key", 3):
        key = {"new": NEW_KEY, "old": OLD_KEY}.get(which, which.upper())
        if _KEY_ID.fullmatch(key):
            by_ring[ring] = by_ring.get(ring, frozenset()) | {key}
    return by_ring


def rings(source: Source, known: Iterable[str]) -> tuple[str, ...] | None:
    """The keyrings that apt uses for a source; ``None`` if the source contains its key or needs none."""
    if "trusted=yes" in source.text.replace(" ", "").lower() or any("BEGIN" in ring for ring in source.signed_by):
        return None
    paths = tuple(ring for ring in source.signed_by if ring.startswith("/"))
    return paths or tuple(ring for ring in known if ring.startswith((TRUSTED, f"{TRUSTED}.d/")))


def _rows(look: Look, kind: str, length: int) -> list[list[str]]:
    answer = look.answer(SOURCES)
    if not answer.ok or answer.truncated:
        raise Unread("apt's sources could not be read whole")
    rows = (line.split("\t", length - 1) for line in answer.text.split("\n"))
    return [row for row in rows if len(row) == length and row[0] == kind]


def _lines(file: str, numbered: Iterable[tuple[int, str]]) -> Iterator[Source]:
    """The sources of a list in one-line style (sources.list(5))."""
    for number, text in numbered:
        if match := _LIST_LINE.match(text):
            options = dict(word.lower().partition("=")[::2] for word in (match[1] or "").split())
            exact = dict(zip(options, (word.partition("=")[2] for word in (match[1] or "").split()), strict=False))
            yield Source(file, number, match[2], match[3], _names(exact.get("signed-by", "")), text)


def _stanzas(file: str, numbered: Iterable[tuple[int, str]]) -> Iterator[Source]:
    """The sources of a file in deb822 style (sources.list(5))."""
    stanza: dict[str, str] = {}
    first, field = 0, ""
    for number, text in [*numbered, (0, "")]:
        if not text.strip():
            yield from _stanza(file, first, stanza)
            stanza, field = {}, ""
        elif text.startswith("#"):
            continue
        elif text[0] in " \t":
            stanza[field] = f"{stanza.get(field, '')} {text.strip()}"
        elif match := _FIELD.match(text):
            field = match[1].lower()
            stanza[field] = match[2].strip()
            first = number if field == "uris" else first


def _stanza(file: str, line: int, fields: Mapping[str, str]) -> Iterator[Source]:
    if fields.get("enabled", "yes").lower() in {"no", "false", "off", "0", "without", "disable"}:
        return
    for uri in fields.get("uris", "").split():
        for suite in fields.get("suites", "/").split():
            text = f"URIs: {uri}" + (" Trusted=yes" if fields.get("trusted", "").lower() == "yes" else "")
            yield Source(file, line, uri, suite, _names(fields.get("signed-by", "")), text)


def _names(signed_by: str) -> tuple[str, ...]:
    if "BEGIN PGP" in signed_by:
        return ("BEGIN PGP",)
    return tuple(sorted(word for word in re.split(r"[,\s]+", signed_by) if word))


def _path(uri: str) -> str:
    try:
        return urlsplit(uri).path
    except ValueError:  # a [ in a host's name
        return ""
