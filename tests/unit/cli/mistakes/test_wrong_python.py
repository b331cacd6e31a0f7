"""A Python that is too old, and an environment without the libraries: one sentence for every first command."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.places import PROJECT
from tests.unit.cli.mistakes.desk import Said

OLD = ("2.7", "3.6", "3.7", "3.8", "3.9", "3.10")
#: files that every Python reads first, for any command
FRONT = ("hostwright/__init__.py", "hostwright/cli/skeleton/tasks.py", "tasks.py", "lab/__init__.py")
#: commands in a checkout
MAIN = "from hostwright.__main__ import main; main()"
COMMANDS = {
    "python -m hostwright": ("-m", "hostwright", "plan"),
    "the installed command": ("-c", f"import sys; sys.argv = {['hostwright', 'plan']}; {MAIN}"),
    "import hostwright": ("-c", "import hostwright"),
    "make demo": ("-m", "lab.demo"),
    "python -m lab": ("-m", "lab", "status"),
}


def interpreters() -> Iterator[tuple[str, str]]:
    """Return the old Pythons of this machine: those on the search path, and those of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in OLD:
        found = [*sorted(pyenv.glob(f"{version}.*/bin/python"))]
        if program := shutil.which(f"python{version}"):
            found.append(Path(program))
        for path in found:
            told = subprocess.run(
                [path, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, check=False
            )
            if told.returncode == 0:  # otherwise a shim of pyenv for a Python that is not selected
                yield version, str(path)
                break


def typed(*words: str, where: Path = PROJECT, **env: str) -> Said:
    done = subprocess.run(
        words,
        cwd=where,
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "PYTHONDONTWRITEBYTECODE": "1", **env},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return Said(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("file", FRONT)
@pytest.mark.parametrize("minor", [6, 8, 9, 10])
def test_the_front_door_can_be_read_by_an_old_python(file: str, minor: int) -> None:
    """Checked by its grammar, so that no old Python is necessary."""
    assert ast.parse((PROJECT / file).read_text("utf-8"), feature_version=(3, minor))


@pytest.mark.parametrize("what", COMMANDS)
@pytest.mark.parametrize(("version", "python"), [*interpreters()] or [("none", "")])
def test_an_old_python_is_told_which_is_needed(version: str, python: str, what: str) -> None:
    if not python:
        pytest.skip(f"this machine has none of Python {', '.join(OLD)}")
    said = typed(python, *COMMANDS[what])
    assert (said.status, said.out, said.sentences) == (2, "", 1), said
    assert re.match(rf"Hostwright needs Python 3.11 or newer, and \S+ is {re.escape(version)}\.\d+: ", said.err), (
        said.err
    )
    assert "python3.11 -m venv .venv" in said.err


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment of this Python with Invoke, and without Hostwright's other dependencies."""
    place = tmp_path_factory.mktemp("bare") / "venv"
    venv.create(place, symlinks=True)
    (packages,) = place.glob("lib/python*/site-packages")
    import invoke

    shutil.copytree(Path(invoke.__file__).parent, packages / "invoke")
    return place


def test_libraries_are_missing_for_the_command(bare: Path) -> None:
    for command in COMMANDS.values():
        if command == ("-c", "import hostwright"):
            continue
        said = typed(str(bare / "bin/python"), *command)
        assert (said.status, said.out, said.sentences) == (2, "", 1), said
        for part in (str(bare / "bin/python"), "No module named", "make setup"):
            assert part in said.err, said.err


def test_libraries_are_missing_for_invoke(bare: Path) -> None:
    """In the checkout, where the package itself can be imported."""
    said = typed(str(bare / "bin/python"), "-m", "invoke", "plan", "--hosts", "gpu01")
    assert (said.status, said.sentences) == (2, 1), said
    assert "No module named" in said.err and "make setup" in said.err


def test_a_site_under_the_invoke_of_an_old_python(tmp_path: Path) -> None:
    """Only its tasks are read, which first report that Hostwright is missing."""
    shutil.copy(PROJECT / "hostwright/cli/skeleton/tasks.py", tmp_path / "tasks.py")
    for python in (*(python for version, python in interpreters() if version != "2.7"), sys.executable):
        said = typed(python, "-S", "-c", "import tasks", where=tmp_path, PYTHONPATH=str(tmp_path))
        assert (said.status, said.out, said.sentences) == (2, "", 1), said
        assert "cannot import Hostwright" in said.err and ". .venv/bin/activate" in said.err
