"""A checkout without the roles for people, in which all else still works: `make apart` runs its unit tests."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.places import PROJECT
from tests.unit.support.checkout import FOR_PEOPLE

CHECKOUT = (
    ".githooks", ".gitignore", "benchmarks", "docs", "hostwright", "inventory", "lab", "roles", "templates", "tests",
    "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "mkdocs.yml", "pyproject.toml",
    "requirements.lock", "tasks.py",
)  # fmt: skip
#: what is deleted with a role
OF_ROLES = (
    "roles/{}", "templates/{}", "tests/unit/roles/{}", "tests/layers/test_{}.py", "tests/{}", "tests/fixtures/{}",
    "docs/{}*.md",
)  # fmt: skip
#: what writes the generated files anew
GENERATORS = (
    "hostwright.audit.failures.document", "hostwright.cli.shell.reference", "tests.unit.support.schemas",
    "tests.unit.support.identifiers", "tests.prose.messages",
)  # fmt: skip


def run(folder: Path, *words: str) -> str:
    """The output of a Python program in that checkout. Raises ``AssertionError`` with its end where it fails."""
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def make(folder: Path) -> None:
    """Copy the checkout there, delete the roles with what is about them alone, and write the generated files anew."""
    aside = shutil.ignore_patterns("*_cache")  # what Python compiled of the rest is still of use
    for name in CHECKOUT:
        if (PROJECT / name).is_dir():
            shutil.copytree(PROJECT / name, folder / name, symlinks=True, ignore=aside)
        else:
            shutil.copy(PROJECT / name, folder / name)
    for pattern in OF_ROLES:
        for place in [found for name in FOR_PEOPLE for found in folder.glob(pattern.format(name))]:
            shutil.rmtree(place) if place.is_dir() else place.unlink()
    for module in GENERATORS:
        run(folder, "-m", module)


def main() -> int:
    """Run tests of such a checkout, all unit tests unless some are named; the status of pytest."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder)
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        subprocess.run(["git", "add", "."], cwd=folder, check=True)
        words = [*sys.argv[1:]] or ["tests/unit", "-n", "auto"]
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]
        return subprocess.run(command, cwd=folder, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
