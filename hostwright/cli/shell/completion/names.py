"""The names that a shell completes: hosts and groups as a verb last read them, roles and stacks as they lie there.

Reading an inventory takes longer than somebody waits for a completion, and may run a program. So each verb that reads
one keeps its names in the state directory, where somebody completes words at all, and completion reads an inventory
itself only where files of hosts alone are newer than these names.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hostwright.common.errors import InputError
from hostwright.common.input.nearest import nearest
from hostwright.common.places import make_folder, state_root, write_whole
from hostwright.common.userpaths import expanded
from hostwright.plan.roles.site import STANDARD, Site

if TYPE_CHECKING:
    from hostwright.inventory import Inventory

INVENTORY_VARIABLE = "HOSTWRIGHT_INVENTORY"  #: an inventory where none is named, as after ``--inventory``
_FOLDER = "names"  #: in the state directory
_PLUGIN = re.compile(rb"^plugin\s*:", re.MULTILINE)  #: a file that Ansible's plugins make hosts of
_PATTERN = frozenset("@~!&[],*?:")  #: what makes a pattern of hosts of a word
_LEFT_OUT = {"group_vars", "host_vars", "stacks"}  #: folders of an inventory without hosts


@dataclass(frozen=True, slots=True)
class Names:
    """Those of an inventory."""

    hosts: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


def remember(sources: Sequence[Path], inventory: Inventory) -> None:
    """Keep the names of an inventory, for who completes words here: completion makes the folder that they are kept in.

    What cannot be written is left: no verb fails for it.
    """
    place = _place(sources)
    if place.parent.is_dir():
        _keep(place, Names(tuple(inventory.hosts), tuple(inventory.groups)))


def known(named: Sequence[str] = ()) -> Names:
    """The names of the inventories that a call names, else of the one that it would read."""
    given = named or tuple(filter(None, (os.environ.get(INVENTORY_VARIABLE, ""),)))
    sources = [expanded(name) for name in given] or [Site.find().inventory]
    place = _place(sources)
    try:
        kept = json.loads(place.read_text("utf-8"))
        found, at = Names(tuple(kept["hosts"]), tuple(kept["groups"])), place.stat().st_mtime
    except (OSError, ValueError, KeyError, TypeError):
        found, at = Names(), 0.0
    if _changed_since(sources, at):
        found = _read(sources) or found
        _keep(place, found)
    elif not at:
        _make(place.parent)
    return found


def may_be_hosts(word: str) -> bool:
    """Whether a word may mean hosts: a pattern, a name of the inventory, or nearly one; any word where its names are
    not known."""
    if word == "all" or any(sign in _PATTERN for sign in word):
        return True
    try:
        found = known()
    except (InputError, ModuleNotFoundError):  # the verb says what is wrong
        return True
    return not found.hosts or nearest(word, (*found.hosts, *found.groups)) is not None


def roles() -> list[str]:
    """The roles of the package and of the site."""
    folders = (STANDARD / "roles", Site.find().root / "roles")
    return sorted({file.parent.name for folder in folders for file in folder.glob("*/__init__.py")})


def stacks() -> list[str]:
    """The stacks of the package and of the site."""
    files = (file for folder in Site.find().stacks for file in folder.glob("*.yml"))
    return sorted({file.stem for file in files if not file.stem.endswith(".lock")})


def _place(sources: Iterable[Path]) -> Path:
    text = "\n".join(os.path.realpath(source) for source in sources)
    return state_root() / _FOLDER / f"{hashlib.sha256(os.fsencode(text)).hexdigest()[:32]}.json"


def _keep(place: Path, names: Names) -> None:
    with suppress(OSError):
        _make(place.parent)
        write_whole(place, json.dumps(asdict(names)).encode())


def _make(folder: Path) -> None:
    with suppress(OSError):
        make_folder(folder)


def _files(source: Path) -> Iterator[Path]:
    """The files of an inventory that name hosts, and its folders, in which files appear and vanish."""
    if source.is_file():
        yield source
        return
    for folder, below, files in os.walk(source):
        below[:] = [name for name in below if name not in _LEFT_OUT]
        yield Path(folder)
        yield from (Path(folder) / name for name in files)


def _changed_since(sources: Iterable[Path], at: float) -> bool:
    """Whether files of hosts are newer, and are all that the inventory is made of: no program is run here."""
    files = [file for source in sources for file in _files(source)]
    try:
        if not any(file.stat().st_mtime > at for file in files):
            return False
        plain = [file for file in files if file.is_file()]
        return not any(os.access(file, os.X_OK) or _PLUGIN.search(file.read_bytes()) for file in plain)
    except OSError:
        return False


def _read(sources: Sequence[Path]) -> Names | None:
    from hostwright.common.errors import HostwrightError
    from hostwright.inventory import load

    try:
        inventory = load(*sources)
    except HostwrightError:  # the verb says what is wrong with it
        return None
    return Names(tuple(inventory.hosts), tuple(inventory.groups))
