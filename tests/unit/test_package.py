"""The wheel and the sdist: the engine with the standard roles, templates, stacks and checks, and nothing else."""

from __future__ import annotations

import subprocess
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from hostwright import __version__
from tests.unit.support.documents import blocks
from tests.unit.support.package import PROJECT, build_sdist, build_wheel, copy_sources, install


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
    parts = (
        "roles/base/__init__.py",
        "templates/base/",
        "stacks/constraints/",
        "stacks/parts/",
        "checks/pytest.ini",
        "schemas/look/plan.json",
    )
    for part in parts:
        assert any(name.startswith(f"hostwright/standard/{part}") for name in names), part
    assert "hostwright/py.typed" in names  # without it the types of a site's roles are not checked


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


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(wheel, tmp_path_factory.mktemp("installed") / "venv")


@dataclass(frozen=True)
class Place:
    """A directory outside of the checkout, with a home of its own, from which the installed command is called."""

    folder: Path
    programs: Path

    def __call__(self, *words: str, cwd: str = "", program: tuple[str, ...] = ("hostwright",)) -> str:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        done = subprocess.run(
            [str(self.programs / program[0]), *program[1:], *words],
            cwd=self.folder / cwd,
            env={"PATH": f"{self.programs}:/usr/bin:/bin", "HOME": str(home), "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def call(tmp_path: Path, programs: Path) -> Place:
    return Place(tmp_path, programs)


#: a host with a role of the site; its stack names the standard ones alone
HOSTS = "all: {hosts: {gpu01: {ansible_host: 192.0.2.11, hostwright_roles: [base, motd]}}}\n"


def traces(*folders: Path) -> dict[Path, float]:
    return {path: path.stat().st_mtime for folder in folders for path in folder.rglob("*")}


def test_an_installed_hostwright_makes_a_site_and_works_in_it(call: Place) -> None:
    assert call("--version") == f"Hostwright {__version__}\n"
    installed = call.programs.parent
    before = traces(installed)
    call("init", "ours")
    site = call.folder / "ours"
    (site / "inventory/hosts.yml").write_text(HOSTS)
    for block in blocks("docs/roles.md"):  # to the letter
        if block.language == "python" and block.file:
            (site / block.file).parent.mkdir(parents=True, exist_ok=True)
            (site / block.file).write_text(block.text)
    assert "gpu01  192.0.2.11  tensorflow-2.9" in call("hosts", cwd="ours/roles")
    assert "motd_text: 'This host is kept" in call("vars", "--hosts", "gpu01", "--roles", "motd", cwd="ours")
    tested = call("-q", "-p", "no:cacheprovider", "tests/unit", cwd="ours", program=("python", "-B", "-m", "pytest"))
    assert "2 passed" in tested
    assert "debian 11: audit, plan, provision, remove, verify" in call("stacks", cwd="ours")
    assert call("hosts", "--site", "ours") == call("hosts", cwd="ours")
    assert call("hosts", cwd="ours", program=("python", "-m", "invoke")) == call("hosts", cwd="ours")
    assert call("hosts", cwd="ours", program=("python", "-m", "hostwright")) == call("hosts", cwd="ours")
    subprocess.run([str(site / ".ci/run")], env={"PATH": f"{call.programs}:/usr/bin:/bin"}, check=True)
    assert traces(installed) == before, "nothing outside of the site is touched"
    assert {path.name for path in call.folder.iterdir()} == {"home", "ours"}
    assert not list((call.folder / "home").iterdir())
