"""The rooms of the house: which names the engine may say, and who imports whom."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

PROJECT = Path(__file__).parents[2]
ENGINE = PROJECT / "hostwright"
MOST_AT_THE_TOP = 14
FACES = {"roles.py", "failures.py", "proofs.py"}  #: no rooms: what roles import of several rooms
STANDARD = "hostwright.standard"


VENDORS = re.compile(r"nvidia|cuda|cudnn|tensorflow|torch|\bjax|docker", re.IGNORECASE)
#: what still says one: packages that an installer must not upgrade
NAMED = {"rebuild/install/seeds/ubuntu.py"}

GPU_WORDS = {"gpu", "gpus", "card", "cards", "ecc"}
#: the modules that handle GPUs, as values that no vendor's name stands in
KNOW_GPUS = {
    "apply/disturb/draining.py",  # which of them a host's work uses, for the site's commands
    "audit/failures/catalogue.py",  # the rules about them are every host's
    "audit/failures/document.py",
    "audit/fleetaudit.py",
    "plan/facts/expected.py",
    "audit/hardware/gpu.py",  # the values
    "audit/hardware/gpucolumns.py",  # and their columns in reports
    "audit/hardware/known.py",
    "audit/history/hosthistory.py",
    "audit/history/items.py",
    "audit/history/moving.py",
    "audit/history/reading.py",
    "audit/history/store.py",
    "audit/judging/alike.py",
    "audit/judging/audited.py",
    "audit/judging/judging.py",
    "audit/judging/context.py",
    "audit/readings/host.py",
    "audit/reports/table.py",
    "audit/reports/html/data.py",
    "audit/reports/prometheus.py",
    "audit/reports/spreadsheet.py",
    "plan/host/hostfacts.py",
    "plan/host/occupancy.py",
    "plan/targets.py",  # how many a host should have
    "plan/roles/role.py",
    "plan/roles/wants.py",
    "prove/host.py",
    "prove/job.py",  # temperatures, a card each
    "prove/judging.py",  # the device of a measurement that has none
    "prove/model.py",
    "prove/reading.py",
    "rebuild/ways/means.py",
    "stack/rules.py",
    "verify/layer_checks.py",  # checks that need one
    "verify/verdict.py",
    "cli/views/audits.py",  # cards that only the driver of the stack can read end an audit with no failure
    "cli/views/verdicts.py",
    "failures.py",
    "roles.py",
}


def folders(root: Path) -> Iterator[Path]:
    """The folders of Python files below ``root``, ``root`` included, links left out."""
    if root.name in {"__pycache__", "standard"} or root.is_symlink():
        return
    yield root
    for path in sorted(root.iterdir()):
        if path.is_dir():
            yield from folders(path)


def entries(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if not path.name.startswith("__")]


def imported(source: str) -> set[str]:
    """Every module that a source names in an import, at whatever depth and for whatever purpose."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return found


def names_standard(source: str) -> bool:
    return any(name == STANDARD or name.startswith(f"{STANDARD}.") for name in imported(source))


def test_the_engine_has_fourteen_things_at_the_top() -> None:
    there = set(entries(ENGINE)) - {"py.typed"} - FACES  # no room: it tells type checkers that the package has types
    assert len(there) <= MOST_AT_THE_TOP


def test_the_engine_imports_no_standard_role() -> None:
    sources = (path for folder in folders(ENGINE) for path in folder.glob("*.py"))
    assert [str(path) for path in sources if names_standard(path.read_text())] == []


def test_the_engine_names_no_vendor_and_no_layer_of_theirs() -> None:
    sources = (path for folder in folders(ENGINE) for path in folder.iterdir() if path.suffix in {".py", ".sh", ".j2"})
    named = {str(path.relative_to(ENGINE)) for path in sources if VENDORS.search(path.read_text())}
    assert named == NAMED


def identifiers(source: str) -> set[str]:
    """The words of all names in a module's code, in lower case; its texts and comments do not count."""
    kinds = ("id", "attr", "arg", "name", "module")
    values = (getattr(node, kind, None) for node in ast.walk(ast.parse(source)) for kind in kinds)
    names = {value for value in values if isinstance(value, str)}
    return {word.lower() for name in names for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def test_few_modules_of_the_engine_know_of_gpus() -> None:
    sources = (path for folder in folders(ENGINE) for path in folder.glob("*.py"))
    assert {str(path.relative_to(ENGINE)) for path in sources if identifiers(path.read_text()) & GPU_WORDS} == KNOW_GPUS


@pytest.mark.parametrize(
    "source",
    [
        "import hostwright.standard.roles.cuda",
        "from hostwright import standard",
        "def f():\n    from hostwright.standard.roles import cuda",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from hostwright.standard.roles.cuda import Cuda",
    ],
)
def test_an_import_of_a_standard_role_is_seen_wherever_it_stands(source: str) -> None:
    assert names_standard(source)


def circle_in(package: str) -> list[str]:
    """Modules of a package that import each other in a circle, at whatever depth and for whatever purpose."""
    graph = grimp.build_graph(package, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_of_the_engine_import_each_other_in_a_circle() -> None:
    assert circle_in("hostwright") == []


@pytest.mark.parametrize(
    ("name", "back"),
    [
        ("circle_at_run_time", "from {package} import a"),
        ("circle_within_a_function", "def f():\n    from {package}.a import A"),
        ("circle_for_types", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from {package}.a import A"),
    ],
)
def test_a_circle_is_seen_however_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, back: str
) -> None:
    files = {"__init__": "", "a": f"from {name}.b import B\nclass A: ...", "b": back.format(package=name)}
    (tmp_path / name).mkdir()
    for module, source in files.items():
        (tmp_path / name / f"{module}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    assert set(circle_in(name)) == {f"{name}.a", f"{name}.b"}
