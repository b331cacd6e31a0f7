"""Verbs that roles bring: the collection ``namespace`` in a role's module ``tasks``.

The module is read by its path, without the role's package, whose imports no verb but its own needs: ``invoke --list``
stays quick. So it imports what is slow inside its tasks, as the standard verbs do, and nothing relative to itself.
"""

from __future__ import annotations

import sys
import traceback
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path

from invoke import Collection, Exit

import hostwright
from hostwright.cli.door.plaininvoke import of_invoke

STANDARD = Path(hostwright.__file__).parent / "standard" / "roles"


def verbs_of_roles(folder: Path) -> tuple[Collection, ...]:
    """The collections of the roles in a folder, in the order of the roles' names; none where there is no such folder.

    >>> [verbs.name for verbs in verbs_of_roles(Path("/nonexistent"))]
    []

    Raises Invoke's ``Exit``, with file and line, for a module that cannot be imported or has no collection.
    """
    return tuple(_verbs(file) for file in sorted(folder.glob("*/tasks.py")))


def verbs_here() -> tuple[Collection, ...]:
    """The collections of the standard roles, and of the site's own where there is a site around the working
    directory."""
    from hostwright.common.errors import InputError
    from hostwright.plan.roles.site import Site

    try:
        roles = Site.find().root / "roles"
    except InputError:  # the verb that needs a site says so
        return verbs_of_roles(STANDARD)
    try:
        own = () if roles.resolve() == STANDARD.resolve() else verbs_of_roles(roles)
    except Exit:
        if of_invoke(sys.argv):
            raise
        own = ()  # the command `hostwright` reads them again, where it can say what is wrong
    taken = {verbs.name for verbs in own}
    return (*(verbs for verbs in verbs_of_roles(STANDARD) if verbs.name not in taken), *own)


def _verbs(file: Path) -> Collection:
    name = f"hostwright_tasks_of_{file.parent.name}"
    loader = SourceFileLoader(name, str(file))
    module = module_from_spec(ModuleSpec(name, loader, origin=str(file)))
    try:
        loader.exec_module(module)
    except Exception as error:
        raise Exit(f"{_line(error, file)}: {type(error).__name__}: {error}", code=2) from error
    verbs = getattr(module, "namespace", None)
    if not isinstance(verbs, Collection) or not verbs.name:
        raise Exit(f"{file}: expected `namespace = Collection(NAME, …)`, the verbs of the role", code=2)
    return verbs


def _line(error: Exception, file: Path) -> str:
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return f"{file}:{lines[-1]}" if lines else str(file)
