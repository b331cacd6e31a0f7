"""apt's sources that mention CUDA, as apt reads them, and the keyrings that hold NVIDIA's two keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from hostwright.failures import Unread
from hostwright.resources import DEARMOR, Probe
from hostwright.roles import Pattern, sh_file
from hostwright.standard.roles.base.failures.trust.sources import Source, parsed

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

OLD_KEY = "F60F4B3D7FA2AF80"  #: until April 2022, and in every local repository of 11.2
NEW_KEY = "A4B469963BF863CC"  #: since then, for the network repository
TRUSTED = "/etc/apt/trusted.gpg"  #: apt-key's keyring, used with those in TRUSTED.d for every source that names none

#: ``source FILE NUMBER LINE`` of each list that mentions CUDA, and ``key FILE old|new|ID`` of keyrings.
SOURCES = Probe(f"{DEARMOR}\n" + sh_file(__file__, "apt_sources.sh"), root=True)

_KEY_ID = Pattern(r"[0-9A-F]{16}")


def sources(ctx: AuditContext) -> tuple[Source, ...]:
    """The enabled repositories in apt's lists that mention CUDA. Raises ``Unread``."""
    rows = [row for row in _rows(ctx, "source", 4) if row[2].isascii() and row[2].isdigit() and len(row[2]) < 9]
    repositories: list[Source] = []
    for file, lines in groupby(rows, key=lambda row: row[1]):
        repositories += parsed(file, [(int(row[2]), row[3]) for row in lines])
    return tuple(repositories)


def keys(ctx: AuditContext) -> Mapping[str, frozenset[str]]:
    """The keyrings by path, with NVIDIA's two keys where they hold them; of apt-key's, all keys. Raises ``Unread``."""
    by_ring: dict[str, frozenset[str]] = {}
    for _, ring, which in _rows(ctx, "key", 3):
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


def _rows(ctx: AuditContext, kind: str, length: int) -> list[list[str]]:
    answer = ctx.answer(SOURCES)
    if not answer.ok or answer.truncated:
        raise Unread("apt's sources could not be read whole")
    rows = (line.split("\t", length - 1) for line in answer.text.split("\n"))
    return [row for row in rows if len(row) == length and row[0] == kind]
