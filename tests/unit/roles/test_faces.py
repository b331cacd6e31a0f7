"""The five engine modules that roles may import: roles import no other, and use every name in them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from hostwright.cli import verb
from tests.unit.support.checkout import ABSENT

PROJECT = Path(__file__).parents[3]
FACES = {"hostwright.roles", "hostwright.resources", "hostwright.failures", "hostwright.proofs", "hostwright.cli.verb"}
OF_ROLES = "hostwright.standard.roles"
ROOTS = ("roles", "tests/fixtures/site/roles", "benchmarks/site")
WRITTEN = sorted(path for root in ROOTS for path in (PROJECT / root).rglob("*.py"))
#: imports of every planning task from roles, and of those from the engine's modules
PLANNED = """
import sys
from hostwright.plan.roles.role import discover
for role in discover():
    for part in ("audit", "occupancy", "rules", "section"):
        role.part(part)
print(*(name for name in sys.modules if name.startswith("hostwright.")))
"""
LISTED = """
import sys
import hostwright.cli.tasks
print(*(name for name in sys.modules if name.startswith("hostwright.")))
"""


def imports(source: str) -> Iterator[tuple[str, str]]:
    """Return module and name of each import from the engine anywhere in a source."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "hostwright":
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.partition(".")[0] == "hostwright")


def loaded_by(program: str) -> set[str]:
    command = [sys.executable, "-c", program]
    return set(subprocess.run(command, cwd=PROJECT, check=True, capture_output=True, text=True).stdout.split())


def test_roles_import_nothing_else_of_the_engine() -> None:
    found = ((path, module) for path in WRITTEN for module, _ in imports(path.read_text()))
    beside = (
        (str(path.relative_to(PROJECT)), module)
        for path, module in found
        if module not in FACES and module != OF_ROLES and not module.startswith(f"{OF_ROLES}.")
    )
    assert set(beside) == set()


@pytest.mark.parametrize("source", ["import hostwright.plan.model", "def f():\n    from hostwright.common import text"])
def test_an_import_of_another_module_is_found(source: str) -> None:
    assert [module for module, _ in imports(source) if module not in FACES]


@pytest.mark.parametrize("name", sorted(FACES))
def test_a_face_has_what_roles_import_or_documents_name_and_nothing_else(name: str) -> None:
    used = {imported for path in WRITTEN for module, imported in imports(path.read_text()) if module == name}
    documents = "".join((PROJECT / "docs" / page).read_text() for page in ("roles.md", "resources.md"))
    documented = set(re.findall(r"\w+", documents))
    exported = set(import_module(name).__all__)
    assert used <= exported
    assert ABSENT or exported <= used | documented


def test_the_names_for_verbs_are_the_same_for_type_checkers_and_at_run_time() -> None:
    types = {name for module, name in imports(Path(verb.__file__).read_text())}
    assert types == set(verb.__all__) == {name for names in verb._MODULES.values() for name in names.split()}
    assert all(getattr(verb, name) is not None for name in verb.__all__)


def test_a_plan_reads_no_known_problems_and_no_proofs() -> None:
    assert loaded_by(PLANNED) & FACES == {"hostwright.roles", "hostwright.resources"}


def test_a_list_of_verbs_reads_nothing_of_roles_but_their_verbs() -> None:
    assert loaded_by(LISTED) & FACES == {"hostwright.cli.verb"}
