"""Imports between roles: only from needed or used roles, without cycles, and none of workspaces from other roles."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import partial
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from hostwright.plan.roles.role import discover
from tests import apart
from tests.unit.support.checkout import FOR_PEOPLE

PROJECT = Path(__file__).parents[3]
ROLES = "hostwright.standard.roles"
DECLARED = {role.name: {*role.needs, *role.uses} for role in discover()}
#: tests of the rest that together take about a second
STILL = (
    "tests/unit/cli/shell/test_shell_words.py",
    "tests/unit/cli/test_schemas.py",
    "tests/unit/plan/test_hostroles.py",
    "tests/unit/plan/test_role.py",
    "tests/unit/roles/test_role_container.py",
)

#: features of a checkout without some roles: every module of a role can be imported, and all parts of roles are read
READ = """
import importlib, pkgutil
from hostwright.plan.roles.role import PARTS, discover
import hostwright.standard.roles as roles
for module in pkgutil.walk_packages(roles.__path__, roles.__name__ + "."):
    importlib.import_module(module.name)
for role in discover():
    for part in PARTS:
        role.part(part)
    print(role.name)
"""


def imported(source: str) -> Iterator[str]:
    """Return the roles that a module imports anywhere in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name.split(".")[3] for name in names if name.startswith(f"{ROLES}."))


def closure(name: str, declared: Mapping[str, set[str]]) -> set[str]:
    """Return the roles that a role declares, directly or indirectly."""
    return set().union(*({other} | closure(other, declared) for other in declared[name]))


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_a_role_imports_only_roles_that_it_needs_or_uses(name: str) -> None:
    files = (PROJECT / "roles" / name).rglob("*.py")
    found = {(str(file.relative_to(PROJECT)), role) for file in files for role in imported(file.read_text())}
    allowed = closure(name, DECLARED) | {name}
    assert {(file, role) for file, role in found if role not in allowed} == set()


def test_roles_declare_each_other_in_no_circle() -> None:
    TopologicalSorter(DECLARED).prepare()
    with pytest.raises(CycleError):
        TopologicalSorter({**DECLARED, "base": {"driver"}}).prepare()


@pytest.mark.parametrize(
    "source",
    [
        f"from {ROLES}.cuda.section import CudaSection",
        f"from {ROLES} import cuda",
        f"import {ROLES}.cuda.rules",
        f"def f():\n    from {ROLES}.cuda import Cuda",
        f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from {ROLES}.cuda import Cuda",
    ],
)
def test_an_import_of_a_role_is_found_wherever_it_is(source: str) -> None:
    assert list(imported(source)) == ["cuda"]


def test_the_containers_for_people_can_be_deleted(tmp_path: Path) -> None:
    """Together with their tests; the rest is read, planned and tested without them. `make apart` runs all of it."""
    apart.make(tmp_path)
    run = partial(apart.run, tmp_path)
    assert set(run("-c", READ).split()) == DECLARED.keys() - set(FOR_PEOPLE)
    verbs = run("-m", "hostwright", "--list")
    assert "images.push" in verbs
    assert "images.rebuild" not in verbs
    assert "workspace." not in verbs
    assert "no mistakes" in run("-m", "hostwright", "check")
    tests = [str(path.relative_to(tmp_path)) for pattern in STILL for path in sorted(tmp_path.glob(pattern))]
    run("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--reruns", "0", *tests)
