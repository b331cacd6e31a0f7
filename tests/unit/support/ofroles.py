"""Modules of roles for tests of all roles, in folders of the roles' tests, because a role may be deleted."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

from tests.places import PROJECT

_ROLES = PROJECT / "tests" / "unit" / "roles"


def of_roles(name: str) -> Iterator[ModuleType]:
    """The module ``tests/unit/roles/ROLE/NAME.py`` of each role that has it."""
    for file in sorted(_ROLES.glob(f"*/{name}.py")):
        yield import_module(f"tests.unit.roles.{file.parent.name}.{name}")
