"""Builds and installs the package of this repository with ``pip``, without a network."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]
SOURCES = (
    "hostwright",
    "roles",
    "templates",
    "inventory/stacks",
    "tests/layers",
    "docs/schemas",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)
_OFFLINE = ("--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-q")


def copy_sources(folder: Path) -> Path:
    """Copy the package's sources, so that a build leaves no files in the checkout."""
    for name in SOURCES:
        source, target = PROJECT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "lab*.yml"))
        else:
            shutil.copy2(source, target)
    return folder


def build_wheel(source: Path, folder: Path) -> Path:
    """Build the wheel of a source tree or an sdist."""
    _pip("wheel", *_OFFLINE, "-w", str(folder), str(source))
    (wheel,) = folder.glob("*.whl")
    return wheel


def build_sdist(source: Path, folder: Path) -> Path:
    """Build the sdist of a source tree."""
    call = "import sys, setuptools.build_meta as backend; backend.build_sdist(sys.argv[1])"
    _run([sys.executable, "-c", call, str(folder)], cwd=source)
    (sdist,) = folder.glob("*.tar.gz")
    return sdist


def _pip(*arguments: str) -> None:
    _run([sys.executable, "-m", "pip", *arguments], cwd=Path("/"))


def _run(command: list[str], cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def install(wheel: Path, folder: Path) -> Path:
    """Install the wheel into a virtual environment that uses this interpreter's dependencies.

    Returns the folder of its programs.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    programs = folder / "bin"
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    _pip("--python", str(programs / "python"), "install", *_OFFLINE, str(wheel))
    return programs
