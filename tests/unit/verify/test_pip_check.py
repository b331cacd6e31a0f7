"""Tests that the program has the same output as ``pip check`` on the same packages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hostwright.verify.pip_check import PIP_CHECK

#: packages that are not installed: their ``Requires-Dist`` and the tag of their wheel
MISSING = {"Hw_One": (["hw-absent>=2", "hw.two"], "py3-none-any"), "hw-two": ([], "py3-none-any")}
OLD = {"hw-one": (['Hw_Two>=3; python_version > "3"', "hw.two[extra]"], "py3-none-any"), "hw-two": ([], "py3-none-any")}
ELSEWHERE = {"hw-one": (['hw-absent; sys_platform == "win32"', 'hw-absent; extra == "x"'], "py3-none-any")}
BROKEN = {"hw-one": (["hw two"], "py3-none-any")}


def packages(folder: Path, wanted: dict[str, tuple[list[str], str]]) -> dict[str, str]:
    for name, (needs, tag) in wanted.items():
        info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        lines = "".join(f"Requires-Dist: {need}\n" for need in needs)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{lines}")
        (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nTag: {tag}\n")
    return {**os.environ, "PYTHONPATH": str(folder)}


def ends(environment: dict[str, str], *way: str) -> tuple[int, str]:
    command = [sys.executable, *way]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd="/")
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("wanted", "status"),
    [({}, 0), (MISSING, 1), (OLD, 1), (ELSEWHERE, 0)],
    ids=["whole", "missing", "old", "elsewhere"],
)
def test_it_prints_what_pip_check_prints(tmp_path: Path, wanted: dict[str, tuple[list[str], str]], status: int) -> None:
    environment = packages(tmp_path, wanted)
    own = ends(environment, "-c", PIP_CHECK)
    assert own[0] == status
    assert own == ends(environment, "-m", "pip", "check")


def test_metadata_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    environment = packages(tmp_path, BROKEN)
    status, printed = ends(environment, "-c", PIP_CHECK)
    assert status == ends(environment, "-m", "pip", "check")[0] == 1
    assert printed.startswith("Error parsing requirements for hw-one: ")


def test_a_wheel_for_another_platform_is_named(tmp_path: Path) -> None:
    environment = packages(tmp_path, {"hw-one": ([], "cp27-cp27m-win32")})
    assert ends(environment, "-c", PIP_CHECK) == (1, "hw-one 1.0 is not supported on this platform\n")
