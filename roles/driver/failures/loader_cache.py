"""Entries of the dynamic loader's cache for the libraries of CUDA, cuDNN and the driver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostwright.resources import Probe
from hostwright.roles import Pattern, sh, sh_file

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

#: probe that prints the loader cache's entries for this architecture, then their directories with links resolved. An
#: unreadable cache is an error, because it must not count as empty.
LOADER = Probe(sh_file(__file__, "loader.sh"))


PRELOAD = "/etc/ld.so.preload"
#: probe that prints ``FILE:TEXT`` for each line with a directory for ldconfig or a library to preload
CONF = Probe(sh("grep -aHsE '^[[:space:]]*/' /etc/ld.so.conf /etc/ld.so.conf.d/*.conf %s", PRELOAD))
_PRELOADED = Pattern(r"/\S*/lib(?:cuda|nvidia-ml)\.so[.0-9]*")


@dataclass(frozen=True, slots=True)
class Cached:
    """Library in the dynamic loader's cache. ``real``: path with links in its directory resolved."""

    name: str
    path: str
    real: str

    def below(self, directory: str) -> bool:
        return self.real.startswith(f"{directory}/")

    def __str__(self) -> str:
        return f"{self.name} => {self.path}"


def cached(ctx: AuditContext) -> tuple[Cached, ...]:
    """Return the loader cache's entries in order. The loader opens the first entry of each name.

    Raises ``Unread`` if the cache cannot be read.
    """
    rows = [line.split("\t") for line in ctx.text(LOADER).splitlines()]
    real = {row[1]: row[2] for row in rows if len(row) == 3 and row[0] == "directory" and row[2].startswith("/")}
    entries = (row for row in rows if len(row) == 3 and row[0] == "entry" and row[2].startswith("/"))
    return tuple(Cached(name, path, _real(path, real)) for _, name, path in entries)


def named_by(ctx: AuditContext, entry: Cached) -> str:
    """Return the text ``, which FILE names``, with the ldconfig file that lists the directory of ``entry``; else
    empty.
    """
    if CONF not in ctx.facts or not ctx.facts[CONF].ok:
        return ""
    rows = (line.partition(":") for line in ctx.facts[CONF].text.splitlines())
    directory = entry.path.rpartition("/")[0]
    files = [file for file, _, named in rows if named.partition("#")[0].strip().rstrip("/") == directory]
    return f", which {files[0]} names" if files else ""


def preloaded(ctx: AuditContext) -> Iterator[str]:
    """Yield a line for each library in /etc/ld.so.preload that has the name of a driver library."""
    rows = (line.partition(":") for line in ctx.text(CONF).splitlines()) if ctx.answer(CONF).ok else ()
    for file, _, libraries in rows:
        if file == PRELOAD:
            yield from (f"{PRELOAD} names {match[0]}" for match in _PRELOADED.finditer(libraries))


def compat_first(ctx: AuditContext) -> Iterator[str]:
    """The first ``libcuda.so.1`` in the loader's cache is in a toolkit's directory ``compat``."""
    first = next((entry for entry in cached(ctx) if entry.name == "libcuda.so.1"), None)
    if first and "/compat/" in first.real:
        yield f"{first}{named_by(ctx, first)}"


def _real(path: str, real: dict[str, str]) -> str:
    directory, _, name = path.rpartition("/")
    return f"{real.get(directory, directory)}/{name}"
