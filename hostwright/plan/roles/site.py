"""A site: the operator's directory with inventory, roles and templates.

    tasks.py            defines the commands for `invoke`
    inventory/          hosts, group_vars/, host_vars/, and stacks/
    roles/              additional roles, and replacements of standard roles
    templates/NAME/     templates of these roles, and replacements of standard templates
    tests/layers/       additional checks of hosts

The first two entries are required. Files of a site take precedence over those of the package (``hostwright/standard``).
Hostwright runs files of a site as programs. Other users must therefore not have write access to a site, unless the
operator named it explicitly.
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
OWN_ROLES = "hostwright_site_"  #: prefix of Python packages with a site's roles
STANDARD = Path(hostwright.__file__).parent / "standard"
_CHECKOUT = Path(hostwright.__file__).resolve().parent.parent
#: names of a site's folders with files that are run or choose programs
_FOLDERS = ("inventory", "roles", "templates", "tests")


@dataclass(frozen=True, slots=True)
class Site:
    """A site; ``root`` is the absolute path of its directory."""

    root: Path

    @classmethod
    def find(cls) -> Site:
        """Return the site in the environment variable ``HOSTWRIGHT_SITE``, else the nearest site at or above the
        working directory.

        Raises ``InputError`` if no site exists, and ``NotTrusted`` if another user can write to the site.
        """
        if named := _named():
            return named
        place = working_directory()
        if site := _nearest(place):
            return site
        meant = _instead(place, "run `hostwright init DIR` to create one, or pass --site DIR")
        here = f"neither {place} nor a directory above it has inventory/ and tasks.py"
        raise InputError(f"no site found: {here}; {meant}")

    @classmethod
    def of(cls, inventory: Path) -> Site:
        """Return the site for an inventory that was named explicitly.

        The result is the site of ``find``, else the nearest site above ``inventory``, else the directory of
        ``inventory``. Raises ``NotTrusted`` if another user can write to the site.
        """
        place = expanded(inventory).absolute()
        return _named() or _nearest(working_directory()) or _nearest(place) or _around(place.parent)

    @property
    def inventory(self) -> Path:
        """The path of the site's folder ``inventory``."""
        return self.root / "inventory"

    @property
    def stacks(self) -> tuple[Path, ...]:
        """The folders with stack files, in order of precedence."""
        return self.inventory / "stacks", STANDARD / "stacks"

    @property
    def templates(self) -> tuple[Path, ...]:
        """The folders with templates, in order of precedence."""
        return self.root / "templates", STANDARD / "templates"

    @property
    def checks(self) -> Path:
        """The folder with the site's additional checks of hosts."""
        return self.root / "tests" / "layers"

    @property
    def role_packages(self) -> tuple[str, ...]:
        """The Python packages with roles: the standard roles, then the site's roles. The latter take precedence."""
        folder = self.root / "roles"
        if not folder.is_dir() or folder.resolve() == (STANDARD / "roles").resolve():
            return (STANDARD_ROLES,)
        return STANDARD_ROLES, _package(folder.resolve())


def _named() -> Site | None:
    named = os.environ.get(VARIABLE, "")
    if not named:
        return None
    root = expanded(named).absolute()
    if not _is_site(root):
        what = "a file" if root.is_file() else "not a site"
        sentence = f"{root} is {what}; a site is a directory with inventory/ and tasks.py; "
        sentence += _instead(root, "`hostwright init DIR` creates one")
        raise InputError(sentence, f"--site, {VARIABLE}")
    return Site(root)


def _nearest(place: Path) -> Site | None:
    site = _above(place)
    if site is not None:
        _check_trust(site.root)
    return site


@cache
def _check_trust(root: Path) -> None:
    """Raise ``NotTrusted`` if another user can write to the site. The checkout of the running Hostwright is always
    trusted.
    """
    if root.resolve() != _CHECKOUT and (fault := fault_below(root, _FOLDERS)):
        name = shlex.quote(one_line(str(root)))
        raise NotTrusted(
            f"the site {name} is not used, because other users may be able to change it: {fault}; if you trust it, "
            f"pass --site {name}, or run `export {VARIABLE}={name}`"
        )


def _around(folder: Path) -> Site:
    """Return ``folder`` as a site. If other users can write to ``folder``, return the package's directory instead.

    Raises ``NotTrusted`` if other users can write to ``roles``, ``templates`` or ``tests/layers`` in ``folder``.
    """
    open_to_others = fault_of(folder)
    for name in ("roles", "templates", "tests/layers"):
        fault = (open_to_others or fault_below(folder / name)) if (folder / name).is_dir() else ""
        if fault:
            raise NotTrusted(
                f"other users may be able to change {name}/ beside the inventory: {fault}; move the inventory to a "
                "directory of its own"
            )
    return Site(STANDARD if open_to_others else folder)


def _instead(place: Path, otherwise: str) -> str:
    site = _above(place) or _below(place)
    if site is None or fault_of(site.root):  # ``fault_of`` reports that other users can write to the site.
        return otherwise
    return f"did you mean --site {os.path.relpath(site.root)}?"


def _below(place: Path) -> Site | None:
    try:
        found = [folder for folder in place.iterdir() if _is_site(folder)]
    except OSError:
        return None
    return Site(found[0]) if len(found) == 1 else None


def _above(place: Path) -> Site | None:
    return next((Site(folder) for folder in (place, *place.parents) if _is_site(folder)), None)


def _is_site(folder: Path) -> bool:
    return (folder / "inventory").is_dir() and (folder / "tasks.py").is_file()


def _package(folder: Path) -> str:
    name = f"{OWN_ROLES}{hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]}"
    if name not in sys.modules:
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
        sys.modules[name] = module_from_spec(spec)
    return name
