"""What an operator installs is what the product imports: nothing is missing, and nothing is for developers alone."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import hostwright
from tests.places import SENT_TO_HOSTS
from tests.unit.support.checkout import ABSENT

TREE = Path(hostwright.__file__).resolve().parents[1]
PROJECT = tomllib.loads((TREE / "pyproject.toml").read_text("utf-8"))["project"]
#: By the places of the code: the engine with its roles, and the checks that `verify` runs on users' hosts.
PRODUCT = ("hostwright", "roles", "tests/layers")
NO_PACKAGE = {"hostwright", "roles", "lab", "tests", "benchmarks", "tasks", "_typeshed"} | sys.stdlib_module_names
#: They run inside a lab's container image, on a borrowed machine or in an environment of the benchmark's, on what is
#: installed there.
ELSEWHERE = (
    *(TREE / "lab/serving/savedmodel.py", TREE / "tests/workspaces/made_models.py"),
    TREE / "tests/gpu/nvml.py",
    *(TREE / "benchmarks" / name for name in ("ansible_answers.py", "page/draw.py", "peers/pyinfra/deploy.py")),
)
#: Parts of another package, by whose version theirs is chosen, and whose documentation has them imported.
PART_OF = {"pydantic-core": "pydantic", "markupsafe": "jinja2", "dask": "distributed"}


def imported(text: str) -> Iterator[str]:
    """The packages, of others, that a module imports, wherever it does."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        else:
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        yield from {name.partition(".")[0] for name in names} - NO_PACKAGE


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def distributions(folders: Iterable[str]) -> set[str]:
    """What must be installed for the code in these folders."""
    by_module = packages_distributions()
    files = [path for folder in folders for path in (TREE / folder).rglob("*.py")] + [TREE / "tasks.py"]
    here = [path for path in files if path not in ELSEWHERE and not path.match(SENT_TO_HOSTS)]
    modules = {module for path in here for module in imported(path.read_text("utf-8"))}
    names = {normal(by_module[module][0]) for module in modules}
    return {PART_OF.get(name, name) for name in names}


def declared(requirements: Iterable[str]) -> set[str]:
    return {normal(Requirement(line).name) for line in requirements}


#: what operators install who want that part of the product; no module of another part imports it
EXTRAS = {"dask": "hostwright/apply/executors/cluster"}


def wanted() -> set[str]:
    """What operators install who want all of the product."""
    extras = (PROJECT["optional-dependencies"][name] for name in EXTRAS)
    return declared(PROJECT["dependencies"]).union(*map(declared, extras))


#: what a single role imports, which may be deleted from a checkout
OF_ROLES = {"workspaces": "ruamel-yaml"}


def test_the_product_imports_what_it_declares_and_declares_what_it_imports() -> None:
    assert distributions(PRODUCT) == wanted() - {OF_ROLES[role] for role in ABSENT if role in OF_ROLES}


@pytest.mark.parametrize(("extra", "folder"), EXTRAS.items())
def test_an_extra_is_imported_by_the_part_that_needs_it_alone(extra: str, folder: str) -> None:
    packages = declared(PROJECT["optional-dependencies"][extra])
    assert packages <= distributions([folder])
    outside = [path for path in (TREE / "hostwright").rglob("*.py") if not path.is_relative_to(TREE / folder)]
    modules = {module for path in outside for module in imported(path.read_text("utf-8"))}
    assert modules.isdisjoint({"distributed", "dask"})


def test_what_only_tests_the_lab_and_the_benchmarks_import_is_for_developers() -> None:
    others = distributions([*PRODUCT, "lab", "tests", "benchmarks"]) - wanted()
    developers = declared(PROJECT["optional-dependencies"]["dev"])
    assert others <= developers
    assert not developers & wanted()


@pytest.mark.parametrize("name", ["selenium", "mypy", "sushy-tools", "ruff", "hypothesis"])
def test_developers_tools_are_no_dependency(name: str) -> None:
    assert name not in declared(PROJECT["dependencies"])


def test_everything_declared_is_pinned() -> None:
    pinned = set(re.findall(r"^([A-Za-z0-9._-]+)==", (TREE / "requirements.lock").read_text("utf-8"), re.MULTILINE))
    everything = wanted() | declared(PROJECT["optional-dependencies"]["dev"])
    assert everything <= {normal(name) for name in pinned}
