"""``invoke stacks``, ``mirror``: the available stacks, what was tried where, and their files on this machine."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from hostwright.cli import console
from hostwright.cli.live.transfers import make_progress, summary
from hostwright.cli.opening import open_fleet, refuse_strangers
from hostwright.cli.views.shared import print_document
from hostwright.cli.views.stacks import show_stacks
from hostwright.common.errors import AS_DESIRED, BAD_INPUT, InputError
from hostwright.common.interruption import on_interrupt
from hostwright.common.quoting import sh
from hostwright.common.request import Request
from hostwright.common.text import printable, shown_bytes
from hostwright.common.userpaths import expanded, place_for

if TYPE_CHECKING:
    from pathlib import Path

    from hostwright.plan.stacks.packages import PackageSearch
    from hostwright.stack.store.sources import FileSource


def stacks(request: Request) -> int:
    """``invoke stacks``; a stack that cannot be used is bad input."""
    fleet = open_fleet(request)
    refuse_strangers(fleet)
    listed = fleet.stacks()
    show_stacks(listed, as_json=request.json)
    return BAD_INPUT if any(stack.problem for stack in listed) else AS_DESIRED


@dataclass(frozen=True, slots=True)
class FilePlaces:
    """The directories from which and into which ``invoke mirror`` brings files; empty where none was named."""

    source: str = ""
    export: str = ""
    imported: str = ""

    def files(self) -> FileSource | None:
        """Where files are taken from. Raises ``InputError``."""
        from hostwright.stack.store.sources import Exported, OwnFiles

        if self.source and self.imported:
            raise InputError("take files from one place: --from adds to what is downloaded, --import replaces it")
        if self.imported:
            return Exported(expanded(self.imported))
        return OwnFiles(expanded(self.source)) if self.source else None


def _listed(text: str) -> tuple[str, ...]:
    """The words of an option, with commas between them, each once."""
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def _pythons(text: str) -> tuple[str, ...]:
    """The versions of Python in an option. Raises ``InputError``."""
    named = _listed(text)
    for python in named:
        if not re.fullmatch(r"3\.[0-9]{1,2}", python):
            raise InputError(f"found {printable(python)!r}, expected versions of Python such as 3.9,3.10", "--pythons")
    return named


@dataclass(frozen=True, slots=True)
class PackageWords:
    """How ``invoke mirror`` finds packages of distributions; empty where nothing was named."""

    systems: str = ""
    sources: str = ""
    keyring: str = ""
    renew: bool = False

    def search(self) -> PackageSearch:
        """The same as a value. Raises ``InputError``."""
        from hostwright.plan.stacks.packages import PackageSearch, system
        from hostwright.stack.store.aptroot import AptArchive

        sources, keyring = _file(self.sources, "--sources"), _file(self.keyring, "--keyring")
        return PackageSearch(tuple(map(system, _listed(self.systems))), self.renew, AptArchive(sources, keyring))


def _file(name: str, option: str) -> Path | None:
    """The file of an option, if one is named. Raises ``InputError``."""
    path = expanded(name) if name else None
    if path is not None and not path.is_file():
        raise InputError(f"{path} is no file", option)
    return path


def mirror(
    request: Request, where: FilePlaces, *, stack: str, pythons: str = "", packages: PackageWords | None = None
) -> int:
    """``invoke mirror``."""
    source, to = where.files(), place_for(where.export, "--export", "files of stacks") if where.export else None
    wanted, search = _pythons(pythons), (packages or PackageWords()).search()
    fleet = open_fleet(request)
    refuse_strangers(fleet)
    out = console.make_console(stderr=request.json)
    kept = "stopped; what was downloaded is kept, and the same command again goes on from there"
    with on_interrupt(kept), make_progress(out) as progress:
        done = fleet.mirror(stack, source, to, pythons=wanted, search=search, progress=progress)
    if request.json:
        print_document("mirror", {"files": [asdict(file) for file in done]})
    elif done:
        out.print(summary(done))
        if to:
            size = shown_bytes(sum({file.sha256: file.size for file in done}.values()))
            there = sh("invoke mirror --import %s", str(to))
            out.print(Text(f"exported {size} to {to}; on the other machine: {there}"), soft_wrap=True)
    else:
        out.print("nothing to download: the roles of these hosts need no file of a stack")
    return AS_DESIRED
