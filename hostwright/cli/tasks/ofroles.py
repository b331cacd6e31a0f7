"""Loads the verbs of roles: the collection ``namespace`` in each role's module ``tasks``.

A module ``tasks_NAME`` of a role adds verbs to the collection of the role ``NAME``. Modules are loaded by path, without
the role's package. They import slow modules only inside tasks, and use no relative imports.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path

from invoke import Collection, Exit

import hostwright
from hostwright.cli.shell.plaininvoke import of_invoke
from hostwright.cli.shell.unforeseen import place_of
from hostwright.common.errors import described

STANDARD = Path(hostwright.__file__).parent / "standard" / "roles"


def verbs_of_roles(folder: Path) -> tuple[Collection, ...]:
    """Return the collections of verbs for the roles in ``folder``, sorted by role; none if the folder does not exist.

    >>> [verbs.name for verbs in verbs_of_roles(Path("/nonexistent"))]
    []

    Raises Invoke's ``Exit``, with file and line, if a module cannot be imported or has no collection.
    """
    return _by_name(map(_verbs, _files(folder)))


def own_verbs(root: Path, *, run: bool) -> tuple[Collection, ...]:
    """Return the verbs of the roles of the site at ``root``, by importing their modules (``run``) or only parsing them.

    Raises Invoke's ``Exit`` if a module cannot be imported or has no collection.
    """
    from hostwright.cli.shell.ofsite.written import verbs_in

    folder = root / "roles"
    if folder.resolve() == STANDARD.resolve():
        return ()
    if run:
        return verbs_of_roles(folder)
    return _by_name(verbs for file in _files(folder) if (verbs := verbs_in(file, _module_of(file))).name)


def verbs_here() -> tuple[Collection, ...]:
    """Return the verbs of standard roles, and in ``invoke`` also those of the current site's roles.

    The command ``hostwright`` loads the site's verbs itself.
    """
    from hostwright.common.errors import InputError
    from hostwright.plan.roles.site import Site

    standard = verbs_of_roles(STANDARD)
    if not of_invoke(sys.argv):
        return standard
    try:
        own = own_verbs(Site.find().root, run=True)
    except InputError:  # the help text is printed without a site; each verb reports the missing site itself
        return standard
    taken = {verbs.name for verbs in own}
    return (*(verbs for verbs in standard if verbs.name not in taken), *own)


def _by_name(collections: Iterable[Collection]) -> tuple[Collection, ...]:
    named: dict[str | None, Collection] = {}
    for verbs in collections:
        first = named.setdefault(verbs.name, verbs)
        if first is not verbs:
            for task in verbs.tasks.values():
                first.add_task(task)
    return tuple(named.values())


def _files(folder: Path) -> list[Path]:
    return sorted((*folder.glob("*/tasks.py"), *folder.glob("*/tasks_*.py")))


def _module_of(file: Path) -> str:
    return f"hostwright_tasks_of_{file.parent.name}{file.stem.removeprefix('tasks')}"


def _verbs(file: Path) -> Collection:
    name = _module_of(file)
    loader = SourceFileLoader(name, str(file))
    module = module_from_spec(ModuleSpec(name, loader, origin=str(file)))
    try:
        loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module of a role may also call sys.exit
        raise Exit(f"{place_of(error, file)}: {described(error)}", code=2) from error
    verbs = getattr(module, "namespace", None)
    if not isinstance(verbs, Collection) or not verbs.name:
        raise Exit(f"{file}: expected `namespace = Collection(NAME, …)`, the verbs of the role", code=2)
    return verbs
