"""Virtual environments of other tools, from requirements files with pinned versions and hashes."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from benchmarks.measuring.command import PROJECT
from hostwright.common.errors import LabError

PINS = Path(__file__).with_name("requirements")
PLACE = PROJECT / "build/benchmarks/environments"
#: name of a virtual environment → names of packages whose versions are on the page
NAMED = {"ansible": ("ansible-core", "mitogen"), "pyinfra": ("pyinfra",)}
PLOTS = "plots"


def environment(name: str) -> Path:
    """Return the ``bin`` directory of a virtual environment. The environment is created if missing or outdated."""
    pins = PINS / f"{name}.txt"
    digest = hashlib.sha256(pins.read_bytes()).hexdigest()
    place = PLACE / name
    marker = place / "pins"
    if not (marker.exists() and marker.read_text() == digest):
        shutil.rmtree(place, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(place)])
        _run([str(place / "bin/python"), "-m", "pip", "install", "-q", "--require-hashes", "-r", str(pins)])
        marker.write_text(digest)
    return place / "bin"


def versions(names: Iterable[str] = tuple(NAMED)) -> dict[str, str]:
    """Return the pinned versions of the tools in these virtual environments, by package."""
    return {
        package: pinned((PINS / f"{name}.txt").read_text("utf-8"), package) for name in names for package in NAMED[name]
    }


def pinned(text: str, package: str) -> str:
    """Return the version of ``package`` in ``text``, a requirements file. Raises ``ValueError`` if it is not pinned."""
    for line in text.splitlines():
        name, equals, rest = line.partition("==")
        if equals and name.strip() == package:
            return rest.split()[0]
    raise ValueError(f"{package} is not pinned")


def _run(words: list[str]) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise LabError(f"{' '.join(words)} ended with {done.returncode}: {(done.stderr or done.stdout)[-1500:]}")
