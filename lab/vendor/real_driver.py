"""NVIDIA's own R470 as a `.run`, from the files in Debian's non-free packages, with the stand-in's installer.

Real: the kernel module's source with its binary part, without Debian's patches, the libraries and nvidia-smi.
nvidia-modprobe and nvidia-persistenced are NVIDIA's, as built by Debian. The installer is the stand-in's and installs
less than NVIDIA's: nothing for displays, 32-bit programs, video or OpenCL.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from lab.vendor import debian, driver
from lab.vendor.model import Profile, VendorBuildError, VendorFile, build_once, describe, recipe_key

VERSION = "470.256.02"  #: last version of the branch, and the version in Debian's archive
ARTIFACT = "driver"
_SERIES = "tesla-470"  #: Debian's name of the branch
_KERNEL = f"nvidia-{_SERIES}-kernel-dkms"
_SOURCE = f"usr/src/nvidia-{_SERIES}-{VERSION}"
#: Debian's additions to NVIDIA's source: patches, and the dkms.conf that applies them
_DEBIANS = ("patches", "dkms.conf", "NVIDIA_Changelog")
#: stem → package
_LIBRARIES = {
    "libcuda": f"libnvidia-{_SERIES}-cuda1",
    "libnvidia-ml": f"libnvidia-{_SERIES}-ml1",
    "libnvidia-ptxjitcompiler": f"libnvidia-{_SERIES}-ptxjitcompiler1",
    "libnvidia-cfg": f"libnvidia-{_SERIES}-cfg1",
}
_LIBRARY_PLACE = f"usr/lib/x86_64-linux-gnu/nvidia/{_SERIES}"
#: program → (package, directory, mode); nvidia-modprobe is setuid, because it creates device files for any user
_PROGRAMS = {
    "nvidia-smi": (f"nvidia-{_SERIES}-smi", f"usr/lib/nvidia/{_SERIES}", "755"),
    "nvidia-modprobe": ("nvidia-modprobe", "usr/bin", "4755"),
    "nvidia-persistenced": ("nvidia-persistenced", "usr/bin", "755"),
}
_NOTE = (
    f"NVIDIA's own module, libraries and nvidia-smi {VERSION} from Debian's non-free archive; the installer around "
    "them is a stand-in"
)


def build(out: Path) -> VendorFile:
    """Build the `.run` into `out` if it is missing."""
    sources = [*(driver.SOURCES / "installer").glob("*.sh"), driver.SOURCES / "kernel" / "dkms.conf"]
    sources += [Path(__file__), Path(driver.__file__)]
    key = recipe_key(Profile.FULL, sources, version=VERSION)
    [file] = build_once(out, "driver", key, partial(_make, out.parent / "sources"))
    return file


def wanted() -> dict[str, tuple[str, ...]]:
    """Return Debian package → patterns of the files to extract."""
    return {
        _KERNEL: (f"./{_SOURCE}/*",),
        **{package: (f"./{_LIBRARY_PLACE}/{stem}.so.*",) for stem, package in _LIBRARIES.items()},
        **{package: (f"./{place}/{name}",) for name, (package, place, _) in _PROGRAMS.items()},
    }


def fill(archive: Path, trees: Mapping[str, Path]) -> list[str]:
    """Copy the packages' files into the archive's directory; return the lines of its ``.manifest``.

    Raises `VendorBuildError` if Debian's archive has another version.
    """
    source = trees[_KERNEL] / _SOURCE
    if not source.is_dir():
        raise VendorBuildError(f"{_KERNEL} has another version than {VERSION} in Debian's archive; change VERSION")
    shutil.copytree(source, archive / "kernel", ignore=shutil.ignore_patterns(*_DEBIANS))
    shutil.copyfile(driver.SOURCES / "kernel" / "dkms.conf", archive / "kernel" / "dkms.conf")
    return [*_programs(archive, trees), *_libraries(archive, trees), *driver.sources_of_kernel(archive, VERSION)]


def _programs(archive: Path, trees: Mapping[str, Path]) -> Iterator[str]:
    yield "file 755 nvidia-installer /usr/bin/nvidia-installer"
    yield "link nvidia-installer /usr/bin/nvidia-uninstall"
    yield "file 644 README.txt /usr/share/doc/NVIDIA_GLX-1.0/README.txt"
    for name, (package, place, mode) in _PROGRAMS.items():
        shutil.copy(trees[package] / place / name, archive)
        yield f"file {mode} {name} /usr/bin/{name}"


def _libraries(archive: Path, trees: Mapping[str, Path]) -> Iterator[str]:
    for stem, package in _LIBRARIES.items():
        shutil.copy(trees[package] / _LIBRARY_PLACE / f"{stem}.so.{VERSION}", archive)
        yield from driver.library(stem, VERSION)


def _make(sources: Path, work: Path) -> list[VendorFile]:
    archive = work / driver.file_name(VERSION).removesuffix(".run")
    archive.mkdir()
    driver.installer(archive, VERSION)
    (archive / "README.txt").write_text(f"Hostwright lab: {_NOTE}.\n")
    (archive / ".manifest").write_text("\n".join(fill(archive, debian.trees(sources, wanted()))) + "\n")
    driver.pack(work, archive, VERSION, "NVIDIA's files in a hostwright stand-in's installer")
    shutil.rmtree(archive)
    file = work / driver.file_name(VERSION)
    return [describe(file, artifact=ARTIFACT, version=VERSION, stand_in=True, note=_NOTE)]
