"""Names that shell completion offers: hosts and groups from a cache, roles and stacks from their folders.

Reading an inventory is slow and may run a program. Therefore, each verb that reads an inventory caches the names of its
hosts and groups, if completion has created the folder for these caches. Completion reads an inventory itself only if
the inventory is newer than the cache and consists of plain files.
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

INVENTORY_VARIABLE = "HOSTWRIGHT_INVENTORY"  #: environment variable with the default of ``--inventory``
_FOLDER = "names"  #: folder with the cached names of hosts, in the state directory
#: pattern of the line that marks a YAML file as configuration of an Ansible inventory plugin
_PLUGIN = re.compile(rb"^plugin\s*:", re.MULTILINE)
_PATTERN = frozenset("@~!&[],*?:")  #: characters that only a host pattern contains, not a host name
_LEFT_OUT = {"group_vars", "host_vars", "stacks"}  #: names of folders in an inventory that define no hosts


@dataclass(frozen=True, slots=True)
class Names:
    """The names of an inventory's hosts and groups."""

    hosts: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


def remember(sources: Sequence[Path], inventory: Inventory) -> None:
    """Cache the names in ``inventory``, if completion has created the folder for caches. Write errors are ignored."""
    place = _place(sources)
    if place.parent.is_dir():
        _keep(place, Names(tuple(inventory.hosts), tuple(inventory.groups)))


def known(named: Sequence[str] = ()) -> Names:
    """Return the names in the inventories ``named``, or in the default inventory."""
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
    """Return whether ``word`` may mean hosts: a pattern, or similar to a known name.

    If no names are known, any word may mean hosts.
    """
    if word == "all" or any(sign in _PATTERN for sign in word):
        return True
    try:
        found = known()
    # the verb itself reports an inventory that cannot be read, so no error is needed here
    except (InputError, ModuleNotFoundError):
        return True
    return not found.hosts or nearest(word, (*found.hosts, *found.groups)) is not None


def roles() -> list[str]:
    """Return the names of the standard roles and of the site's roles."""
    folders = (STANDARD / "roles", Site.find().root / "roles")
    return sorted({file.parent.name for folder in folders for file in folder.glob("*/__init__.py")})


def stacks() -> list[str]:
    """Return the names of the standard stacks and of the site's stacks."""
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
    if source.is_file():
        yield source
        return
    for folder, below, files in os.walk(source):
        below[:] = [name for name in below if name not in _LEFT_OUT]
        yield Path(folder)
        yield from (Path(folder) / name for name in files)


def _changed_since(sources: Iterable[Path], at: float) -> bool:
    """Return whether an inventory file is newer than the time ``at``. ``False`` if a file is a program or configures a
    plugin, because completion must not run these.
    """
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
    except HostwrightError:  # the verb itself reports an inventory that cannot be read
        return None
    return Names(tuple(inventory.hosts), tuple(inventory.groups))
