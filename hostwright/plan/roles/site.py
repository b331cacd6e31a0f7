"""A site: the directory of those who run hosts, in which all that is theirs lies, and what is standard beside it.

    tasks.py            makes `invoke` know the verbs
    inventory/          hosts, group_vars/, host_vars/, and stacks/
    roles/              further roles, and others of a standard role's name
    templates/NAME/     their templates, and others in the place of standard ones
    tests/layers/       further checks

What a site has goes before what the package brings (``hostwright/standard``), by name. The first two must be there.
A site that nobody named is used only if no other user can have put anything there: its files are run as programs.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path

import hostwright
from hostwright.common.errors import InputError
from hostwright.common.input.ownership import SITE_VARIABLE, NotTrusted, fault_below, fault_of
from hostwright.common.text import one_line
from hostwright.common.userpaths import expanded, working_directory

VARIABLE = SITE_VARIABLE
STANDARD_ROLES = "hostwright.standard.roles"
OWN_ROLES = "hostwright_site_"  #: how the names of packages begin that hold a site's own roles
STANDARD = Path(hostwright.__file__).parent / "standard"
_CHECKOUT = Path(hostwright.__file__).resolve().parent.parent
#: of a site's folders those whose files are run, or decide what is
_FOLDERS = ("inventory", "roles", "templates", "tests")


@dataclass(frozen=True, slots=True)
class Site:
    """A site by its directory, an absolute path."""

    root: Path

    @classmethod
    def find(cls) -> Site:
        """The site that ``HOSTWRIGHT_SITE`` names, else the nearest from the working directory upwards.

        Raises ``InputError`` where there is none, and ``NotTrusted``.
        """
        if named := _named():
            return named
        place = working_directory()
        if site := _nearest(place):
            return site
        meant = _instead(place, "run `hostwright init DIR` to make one, or name one with --site DIR")
        here = f"neither {place} nor a directory above it holds inventory/ and tasks.py"
        raise InputError(f"there is no site here: {here}; {meant}")

    @classmethod
    def of(cls, inventory: Path) -> Site:
        """The site for an inventory that was named: as ``find`` does, else the one that the inventory lies in, else the
        directory that holds it. Raises ``NotTrusted``: what was named is the inventory, not what lies near it."""
        place = expanded(inventory).absolute()
        return _named() or _nearest(working_directory()) or _nearest(place) or _around(place.parent)

    @property
    def inventory(self) -> Path:
        """Its hosts and their variables."""
        return self.root / "inventory"

    @property
    def stacks(self) -> tuple[Path, ...]:
        """Where stacks are looked for, in this order."""
        return self.inventory / "stacks", STANDARD / "stacks"

    @property
    def templates(self) -> tuple[Path, ...]:
        """Where templates are looked for, in this order."""
        return self.root / "templates", STANDARD / "templates"

    @property
    def checks(self) -> Path:
        """Its own checks."""
        return self.root / "tests" / "layers"

    @property
    def role_packages(self) -> tuple[str, ...]:
        """The packages of roles; those of a later one replace others of their name."""
        folder = self.root / "roles"
        if not folder.is_dir() or folder.resolve() == (STANDARD / "roles").resolve():
            return (STANDARD_ROLES,)
        return STANDARD_ROLES, _package(folder.resolve())


def _named() -> Site | None:
    """The site that the variable names."""
    named = os.environ.get(VARIABLE, "")
    if not named:
        return None
    root = expanded(named).absolute()
    if not _is_site(root):
        what = "a file" if root.is_file() else "no site"
        sentence = f"{root} is {what}: a site is a directory that holds inventory/ and tasks.py; "
        sentence += _instead(root, "`hostwright init DIR` makes one")
        raise InputError(sentence, f"--site, {VARIABLE}")
    return Site(root)


def _nearest(place: Path) -> Site | None:
    """The nearest site. Raises ``NotTrusted``."""
    site = _above(place)
    if site is not None:
        _check_trust(site.root)
    return site


@cache
def _check_trust(root: Path) -> None:
    """Raise ``NotTrusted`` for a site with something that another user can have put there. The checkout that this
    program runs from is trusted already."""
    if root.resolve() != _CHECKOUT and (fault := fault_below(root, _FOLDERS)):
        name = shlex.quote(one_line(str(root)))
        raise NotTrusted(
            f"{fault}, so nothing of the site {name} is used; if you trust it, name it: "
            f"--site {name} in the call, or `export {VARIABLE}={name}`"
        )


def _around(folder: Path) -> Site:
    """The directory of an inventory that is in no site. Where others may write, it is no site: the package is."""
    open_to_others = fault_of(folder)
    for name in ("roles", "templates", "tests/layers"):
        fault = (open_to_others or fault_below(folder / name)) if (folder / name).is_dir() else ""
        if fault:
            raise NotTrusted(
                f"{fault}, and {name}/ beside the inventory would be used: move the inventory to a directory of its own"
            )
    return Site(STANDARD if open_to_others else folder)


def _instead(place: Path, otherwise: str) -> str:
    """What may have been meant by a place that is no site: the one that it is in, or one in it; else ``otherwise``."""
    site = _above(place) or _below(place)
    if site is None or fault_of(site.root):  # nobody is invited to trust what others put there
        return otherwise
    return f"did you mean --site {os.path.relpath(site.root)}?"


def _below(place: Path) -> Site | None:
    """A site directly in a directory, where there is a single one."""
    try:
        found = [folder for folder in place.iterdir() if _is_site(folder)]
    except OSError:
        return None
    return Site(found[0]) if len(found) == 1 else None


def _above(place: Path) -> Site | None:
    """The nearest site: the directory itself, or one above it."""
    return next((Site(folder) for folder in (place, *place.parents) if _is_site(folder)), None)


def _is_site(folder: Path) -> bool:
    return (folder / "inventory").is_dir() and (folder / "tasks.py").is_file()


def _package(folder: Path) -> str:
    """The package under which the roles in a folder are imported. Its name is made of the path, so that no two sites
    meet in one process, and nothing is put on ``sys.path``."""
    name = f"{OWN_ROLES}{hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]}"
    if name not in sys.modules:
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
        sys.modules[name] = module_from_spec(spec)
    return name
