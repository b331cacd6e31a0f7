"""Packages installed into a venv are compiled, by a process for each processor."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hostwright.resources.python.python import Recipe
from hostwright.resources.python.users_files import HOMES
from hostwright.resources.python.venv_audit import Drift
from hostwright.resources.python.venv_scripts import compile_script, install_script, mend_script
from tests.unit.support.shell import program, run

RECIPE = Recipe("tf", f"{sys.version_info[0]}.{sys.version_info[1]}", "tensorflow==2.9.0", "numpy==1.26.4\n")
DEEP = "/".join(["deep"] * 12)  #: Python 3.8's compileall would stop above this depth


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return the packages of a venv with this Python: two modules, and a file for another Python."""
    folder = tmp_path / RECIPE.home.removeprefix(f"{HOMES}/") / "lib" / f"python{RECIPE.python}" / "site-packages"
    (folder / DEEP).mkdir(parents=True)
    for path, text in (("top.py", "a = 1\n"), (f"{DEEP}/low.py", "b = 2\n"), ("old.py", "print 1\n")):
        (folder / path).write_text(text)
    return folder


def compiled(site: Path, python: str) -> list[str]:
    """Return the compiled files after the venv's Python has run the script."""
    program(site.parents[2] / "bin", "python", python)
    done = run(compile_script(RECIPE).replace(HOMES, str(site.parents[3])))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    return sorted(path.name.partition(".")[0] for path in site.rglob("*.pyc"))


def test_all_that_can_be_compiled_is_and_a_file_for_another_python_fails_nothing(site: Path) -> None:
    assert compiled(site, f'exec {sys.executable} "$@"') == ["low", "top"]


def test_an_interpreter_that_compiles_nothing_fails_nothing(site: Path) -> None:
    assert compiled(site, "exit 1") == []


def test_pip_compiles_nothing_that_is_compiled_afterwards() -> None:
    for script in (install_script(RECIPE), mend_script(RECIPE, [Drift("numpy", "2.0", "1.26.4")])):
        assert script.count(" pip install ") == script.count(" --no-compile ") == 1
        assert script.index(" pip install ") < script.index(compile_script(RECIPE))
