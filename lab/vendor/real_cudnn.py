"""NVIDIA's own cuDNN 8.6.0 in the layout of NVIDIA's archive: headers and libraries of its wheel on PyPI.

The wheel names each library by its soname alone; the file's own name and the links are NVIDIA's archive's. What only
the archive has is missing: the static libraries.
"""

from __future__ import annotations

import re
import shutil
import sys
import zipfile
from functools import partial
from pathlib import Path

from lab.locking import locked
from lab.programs import run, run_logged
from lab.vendor import wheels
from lab.vendor.model import Profile, VendorBuildError, VendorFile, build_once, describe, recipe_key

VERSION = "8.6.0.163"
ARTIFACT = "cudnn"
INSIDE = f"cudnn-linux-x86_64-{VERSION}_cuda11-archive"
FILE_NAME = f"{INSIDE}.tar.gz"
_REQUIREMENT = f"nvidia-cudnn-cu11=={VERSION}"
_PACKAGE = "nvidia/cudnn/"  #: the wheel's directory with `include` and `lib`
_LIBRARY = re.compile(r"(libcudnn\w*)\.so\.8")
_NOTE = f"NVIDIA's own headers and libraries of cuDNN {VERSION}, from its wheel on the machine's package index"


def build(out: Path) -> VendorFile:
    """Build the archive into `out`, unless it is there already: 0.7 GB to fetch and to pack."""
    key = recipe_key(Profile.FULL, (Path(__file__),))
    [file] = build_once(out, "cudnn", key, partial(_make, out.parent / "sources"))
    return file


def unpack(wheel: Path, tree: Path) -> None:
    """Unpack the wheel's headers and libraries into NVIDIA's layout, with its chain of links.

    Raises `VendorBuildError` when a header or library that programs need is not in it.
    """
    for part in ("include", "lib"):
        (tree / part).mkdir(parents=True)
    with zipfile.ZipFile(wheel) as packed:
        for name in packed.namelist():
            kind, _, file = name.removeprefix(_PACKAGE).partition("/")
            library = _LIBRARY.fullmatch(file)
            if kind == "include" and file.endswith(".h"):
                _copy(packed, name, tree / "include" / file)
            elif kind == "lib" and library:
                _library(packed, name, tree / "lib", library[1])
    for needed in ("include/cudnn.h", "include/cudnn_version.h", "lib/libcudnn.so.8"):
        if not (tree / needed).exists():
            raise VendorBuildError(f"{wheel.name} does not have {needed}")


def _library(packed: zipfile.ZipFile, name: str, directory: Path, stem: str) -> None:
    file = f"{stem}.so.{VERSION.rpartition('.')[0]}"
    _copy(packed, name, directory / file)
    (directory / f"{stem}.so.8").symlink_to(file)
    (directory / f"{stem}.so").symlink_to(f"{stem}.so.8")


def _copy(packed: zipfile.ZipFile, name: str, target: Path) -> None:
    with packed.open(name) as source, target.open("wb") as copy:
        shutil.copyfileobj(source, copy, 1 << 20)


def _make(sources: Path, work: Path) -> list[VendorFile]:
    tree = work / INSIDE
    unpack(_wheel(sources), tree)
    same_everywhere = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"]
    # NVIDIA packs it with xz, which takes five minutes on two cores; gzip takes half a minute.
    run(["tar", "-I", "gzip -n -1", *same_everywhere, "-cf", work / FILE_NAME, "-C", work, INSIDE])
    shutil.rmtree(tree)
    return [describe(work / FILE_NAME, artifact=ARTIFACT, version=VERSION, stand_in=False, note=_NOTE)]


def _wheel(sources: Path) -> Path:
    """Return the wheel in `sources`; pip compares it with the index's checksum when it fetches it."""
    place = sources / f"cudnn-{VERSION}"
    with locked("vendor-cudnn"):
        if not place.is_dir():
            fresh = sources / f".cudnn-{VERSION}"
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir(parents=True)
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
            target = ["--platform=manylinux1_x86_64", f"--python-version={wheels.FULL_PYTHON}"]
            run_logged([*pip, *target, "--dest", str(fresh), _REQUIREMENT], sources / "wheels.log")
            fresh.rename(place)
    [wheel] = place.glob("*.whl")
    return wheel
