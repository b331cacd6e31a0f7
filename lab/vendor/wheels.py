"""The wheelhouse: every wheel that TensorFlow 2.9.0 needs on Debian bullseye's Python 3.9, in one tar.

The wheels are the real ones. They are fetched once for all profiles, by the pins of the stack's constraints file,
with pip, setuptools and wheel themselves, so that a virtual environment can be made without any index.
"""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

from lab.config import CHECKOUT
from lab.locking import locked
from lab.programs import run_logged
from lab.vendor.model import Profile, VendorFile, build_once, describe, recipe_key

PYTHON = "3.9"
FULL_PYTHON = "3.9.2"  #: bullseye's own; some wheels exclude 3.9.0 and 3.9.1
VERSION = "2.9.0"
FILE_NAME = f"wheelhouse-tensorflow-{VERSION}-cp39.tar"
CONSTRAINTS = CHECKOUT / "inventory/stacks/constraints/tensorflow-2.9-py39.txt"
PIP = "pip==25.3"  #: the newest one that Python 3.9's own pip 20.3 was seen to install and that installs all the rest
#: what glibc 2.31 of bullseye can load, newest first; pip on the host would accept the same
PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014", "manylinux2010", "manylinux1")


def build(out: Path, profile: Profile) -> list[VendorFile]:
    """Build the wheelhouse into `out`; both profiles share the bytes on disk."""
    key = recipe_key(profile, (Path(__file__), CONSTRAINTS))
    return build_once(out, "wheels", key, lambda work: _make(work, out.parent / "sources"))


def _make(work: Path, sources: Path) -> list[VendorFile]:
    archive = _archive(sources)
    target = work / FILE_NAME
    try:
        os.link(archive, target)
    except OSError:  # another filesystem
        shutil.copyfile(archive, target)
    note = "real wheels from the machine's package index"
    return [describe(target, artifact=f"wheelhouse-{PYTHON}", version=VERSION, stand_in=False, note=note)]


def _archive(sources: Path) -> Path:
    """Return the tar of today's pins in `sources`, fetching the wheels (0.6 GB) when there is none."""
    inputs = {"python": FULL_PYTHON, "pip": PIP, "platforms": " ".join(PLATFORMS)}
    key = recipe_key(Profile.FULL, (CONSTRAINTS,), **inputs)[:10]  # the same for both profiles
    archive = sources / f"wheelhouse-{key}.tar"
    sources.mkdir(parents=True, exist_ok=True)
    with locked("vendor-wheels"):
        if not archive.is_file():
            wheels = sources / f"wheels-{key}"  # of these pins alone: a cut fetch goes on where it was
            wheels.mkdir(exist_ok=True)
            _forget_others(sources, wheels)
            _download(wheels, sources / "wheels.log")
            pack(sorted(wheels.glob("*.whl")), archive)
            shutil.rmtree(wheels)
    return archive


def _forget_others(sources: Path, wheels: Path) -> None:
    """Remove archives and half-fetched wheels of other pins: each is 0.6 GB."""
    for former in sources.glob("wheelhouse-*.tar"):
        former.unlink()
    for former in sources.glob("wheels-*"):
        if former != wheels:
            shutil.rmtree(former)


def _download(wheels: Path, log: Path) -> None:
    """Fetch exactly the pinned wheels; nothing is resolved, so nothing depends on the Python that runs this."""
    tags = [f"--platform={platform}_x86_64" for platform in PLATFORMS]
    abis = [f"--abi={abi}" for abi in ("cp39", "abi3", "none")]
    pinned = ["--requirement", str(CONSTRAINTS), PIP]
    target = ["--implementation=cp", f"--python-version={FULL_PYTHON}", *abis, *tags]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    run_logged([*pip, *target, "--dest", str(wheels), *pinned], log)


def pack(files: Iterable[Path], archive: Path) -> None:
    """Write an uncompressed tar of `files`, flat, in the given order, without times or owners."""
    temporary = archive.with_suffix(".new")
    with tarfile.open(temporary, "w", format=tarfile.GNU_FORMAT) as tar:
        for file in files:
            entry = tarfile.TarInfo(file.name)
            entry.size, entry.mode = file.stat().st_size, 0o644
            with file.open("rb") as stream:
                tar.addfile(entry, stream)
    temporary.replace(archive)
