"""The wheel and the sdist: the engine with the standard roles, templates, stacks and checks, and nothing else."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

import pytest

from hostwright import __version__
from tests.unit.support.package import PROJECT, build_sdist, build_wheel, copy_sources


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sources beside which a lab wrote stacks of its own, which are no part of a package."""
    folder = copy_sources(tmp_path_factory.mktemp("sources"))
    (folder / "inventory/stacks/lab.yml").write_text("extends: tensorflow-2.9\n")
    return folder


@pytest.fixture(scope="module")
def wheel(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(sources, tmp_path_factory.mktemp("wheel"))


def in_checkout() -> set[str]:
    """The files of the package as they lie in the checkout, by way of the links."""
    places = [PROJECT / "hostwright", *(link for link in (PROJECT / "hostwright/standard").iterdir() if link.is_dir())]
    files = (file for place in places for file in place.rglob("*") if file.is_file())
    return {
        str(file.relative_to(PROJECT))
        for file in files
        if "__pycache__" not in file.parts and not file.name.startswith("lab")
    }


def test_the_wheel_holds_the_package_whole_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    about = {name for name in names if name.startswith(f"hostwright-{__version__}.dist-info/")}
    assert names - about == in_checkout()
    for part in ("roles/base/__init__.py", "templates/base/", "stacks/constraints/", "checks/pytest.ini"):
        assert any(name.startswith(f"hostwright/standard/{part}") for name in names), part


def test_an_operator_needs_no_tool_of_the_developers(wheel: Path) -> None:
    metadata = zipfile.ZipFile(wheel).read(f"hostwright-{__version__}.dist-info/METADATA").decode()
    needed = [line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line]
    for name in ("pytest", "pytest-testinfra", "fabric"):
        assert any(line.startswith(f"Requires-Dist: {name}") for line in needed), name
    assert not [line for line in needed if any(tool in line for tool in ("selenium", "mypy", "sushy-tools", "ruff"))]


def test_the_sdist_makes_the_same_wheel(sources: Path, wheel: Path, tmp_path: Path) -> None:
    sdist = build_sdist(sources, tmp_path)
    with tarfile.open(sdist) as archive:
        assert not [member.name for member in archive if not (member.isfile() or member.isdir())]
    again = build_wheel(sdist, tmp_path)
    assert contents(again) == contents(wheel)


def contents(wheel: Path) -> dict[str, bytes]:
    archive = zipfile.ZipFile(wheel)
    return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/RECORD")}
