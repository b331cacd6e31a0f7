"""The wheelhouses: all wheels that TensorFlow needs on Debian bullseye's Python 3.9, in one tar per version.

The wheels are real. They are downloaded once for both profiles, by the pins of the stack's constraints file. pip,
setuptools and wheel are included, so that a virtual environment needs no index.
"""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lab.config import CHECKOUT
from lab.locking import locked
from lab.programs import run_logged
from lab.vendor.model import Profile, VendorFile, build_once, describe, recipe_key

PYTHON = "3.9"
FULL_PYTHON = "3.9.2"  #: bullseye's version; some wheels exclude 3.9.0 and 3.9.1


@dataclass(frozen=True, slots=True)
class Wheelhouse:
    """The wheels of one version of TensorFlow; ``artifact`` is their name in the lab's stack file."""

    version: str
    artifact: str
    constraints: Path
    builder: str  #: name of the recipe's record

    @property
    def file_name(self) -> str:
        """Name of the tar below the vendor directory."""
        return f"wheelhouse-tensorflow-{self.version}-cp39.tar"


_PINS = CHECKOUT / "inventory/stacks/constraints"
BASE = Wheelhouse("2.9.0", f"wheelhouse-{PYTHON}", _PINS / "tensorflow-2.9-py39.txt", "wheels")
UPGRADE = Wheelhouse("2.9.3", f"wheels-2.9.3-{PYTHON}", _PINS / "tensorflow-2.9.3-py39.txt", "wheels-2.9.3")
HOUSES = (BASE, UPGRADE)
VERSION, FILE_NAME, CONSTRAINTS = BASE.version, BASE.file_name, BASE.constraints
PIP = "pip==25.3"  #: the newest pip that Python 3.9's own pip 20.3 can install and that can install all other wheels
#: platforms of bullseye's glibc 2.31, newest first; the same as pip accepts on the host
PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014", "manylinux2010", "manylinux1")


def build(out: Path, profile: Profile) -> list[VendorFile]:
    """Build the wheelhouses into `out`; both profiles share the bytes on disk."""
    files: list[VendorFile] = []
    for house in HOUSES:
        key = recipe_key(profile, (Path(__file__), house.constraints))
        files += build_once(out, house.builder, key, partial(_make, house, out.parent / "sources"))
    return files


def _make(house: Wheelhouse, sources: Path, work: Path) -> list[VendorFile]:
    archive = _archive(house, sources)
    target = work / house.file_name
    try:
        os.link(archive, target)
    except OSError:  # another filesystem
        shutil.copyfile(archive, target)
    note = "real wheels from the machine's package index"
    return [describe(target, artifact=house.artifact, version=house.version, stand_in=False, note=note)]


def _key(house: Wheelhouse) -> str:
    inputs = {"python": FULL_PYTHON, "pip": PIP, "platforms": " ".join(PLATFORMS)}
    return recipe_key(Profile.FULL, (house.constraints,), **inputs)[:10]  # the same for both profiles


def _archive(house: Wheelhouse, sources: Path) -> Path:
    """Return the tar for the current pins in `sources`; download the wheels (0.6 GB) first if it is missing."""
    archive = sources / f"wheelhouse-{_key(house)}.tar"
    sources.mkdir(parents=True, exist_ok=True)
    with locked("vendor-wheels"):
        if not archive.is_file():
            # one directory per set of pins, so that an interrupted download continues
            wheels = sources / f"wheels-{_key(house)}"
            wheels.mkdir(exist_ok=True)
            _forget_others(sources)
            _download(house, wheels, sources / "wheels.log")
            pack(sorted(wheels.glob("*.whl")), archive)
            shutil.rmtree(wheels)
    return archive


def _forget_others(sources: Path) -> None:
    """Delete archives and partial downloads for former pins; each has 0.6 GB."""
    keys = {_key(house) for house in HOUSES}
    for former in sources.glob("wheelhouse-*.tar"):
        if former.stem.removeprefix("wheelhouse-") not in keys:
            former.unlink()
    for left in sources.glob("wheels-*"):
        if left.name.removeprefix("wheels-") not in keys:
            shutil.rmtree(left)


def _download(house: Wheelhouse, wheels: Path, log: Path) -> None:
    """Download exactly the pinned wheels.

    Nothing is resolved, so the version of this machine's Python does not matter.
    """
    tags = [f"--platform={platform}_x86_64" for platform in PLATFORMS]
    abis = [f"--abi={abi}" for abi in ("cp39", "abi3", "none")]
    pinned = ["--requirement", str(house.constraints), PIP]
    target = ["--implementation=cp", f"--python-version={FULL_PYTHON}", *abis, *tags]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    run_logged([*pip, *target, "--dest", str(wheels), *pinned], log)


def pack(files: Iterable[Path], archive: Path) -> None:
    """Write an uncompressed tar of `files`, flat, in the given order, without times and owners."""
    temporary = archive.with_suffix(".new")
    with tarfile.open(temporary, "w", format=tarfile.GNU_FORMAT) as tar:
        for file in files:
            entry = tarfile.TarInfo(file.name)
            entry.size, entry.mode = file.stat().st_size, 0o644
            with file.open("rb") as stream:
                tar.addfile(entry, stream)
    temporary.replace(archive)
