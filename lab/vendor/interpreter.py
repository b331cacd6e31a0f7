"""A relocatable CPython 3.9 in the layout of python-build-standalone's `install_only` archives.

The files are from packages of Debian bullseye: the interpreter, its modules and their shared libraries, in one
directory. Only the search paths for libraries and for pip's wheels are changed, to be relative to that directory.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from lab.image import ensure_programs
from lab.programs import run
from lab.vendor import debian
from lab.vendor.model import Profile, VendorBuildError, VendorFile, build_once, describe, recipe_key

SERIES = "3.9"
VERSION = "3.9.2"
ARTIFACT = f"interpreter-{SERIES}"
FILE_NAME = f"cpython-{VERSION}-x86_64-unknown-linux-gnu-hostwright-lab.tar.gz"
_MODULES = f"lib/python{SERIES}"
#: Debian's packages of the standard library
_STANDARD_LIBRARY = (
    *(f"libpython{SERIES}-minimal", f"libpython{SERIES}-stdlib", f"python{SERIES}-venv"),
    *("python3-distutils", "python3-lib2to3"),
)
#: libraries of the modules, except for glibc and libcrypt, which every Debian host has
_LIBRARIES = (
    *("libexpat1", "zlib1g", "libssl1.1", "libffi7", "libsqlite3-0", "libbz2-1.0", "liblzma5", "libreadline8"),
    *("libtinfo6", "libncursesw6", "libuuid1", "libmpdec3", "libdb5.3"),
)
_FILES = {
    f"python{SERIES}-minimal": (f"./usr/bin/python{SERIES}",),
    **dict.fromkeys(_STANDARD_LIBRARY, (f"./usr/{_MODULES}/*",)),
    "python-pip-whl": ("./usr/share/python-wheels/*",),
    **dict.fromkeys(_LIBRARIES, ("./*x86_64-linux-gnu/*.so*",)),
}
#: Debian's link into /etc, and a module that requires Kerberos libraries
_LEFT_OUT = ("sitecustomize.py", "lib-dynload/nis.*.so")
#: ensurepip's directory of pip's wheels, before and after the change
_WHEELS = ("'/usr/share/python-wheels", "sys.base_prefix + '/share/python-wheels")
_NOTE = "stand-in for an archive that a site pins: Debian bullseye's Python 3.9.2 with its libraries, made relocatable"


def build(out: Path, profile: Profile) -> list[VendorFile]:
    """Build the archive into `out` if it is missing; it is the same in both profiles."""
    key = recipe_key(profile, (Path(__file__),))
    return build_once(out, "interpreter", key, partial(_make, out.parent / "sources"))


def _make(sources: Path, work: Path) -> list[VendorFile]:
    ensure_programs({"patchelf": "patchelf"})
    tree = work / "python"
    for source, target in _files(debian.trees(sources, _FILES)):
        (tree / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, tree / target, follow_symlinks=False)
    for pattern in _LEFT_OUT:
        for path in (tree / _MODULES).glob(pattern):
            path.unlink()
    for name in ("python", "python3"):
        (tree / "bin" / name).symlink_to(f"python{SERIES}")
    _look_beside(tree)
    (tree / "HOSTWRIGHT-LAB").write_text(f"{_NOTE}\n")
    same_everywhere = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"]
    run(["tar", "-I", "gzip -n", *same_everywhere, "-cf", work / FILE_NAME, "-C", work, tree.name])
    shutil.rmtree(tree)
    return [describe(work / FILE_NAME, artifact=ARTIFACT, version=VERSION, stand_in=True, note=_NOTE)]


def _files(places: dict[str, Path]) -> Iterator[tuple[Path, Path]]:
    """Yield each needed file and link of the packages, with its path in the archive."""
    for package, place in places.items():
        for source in sorted(path for path in place.rglob("*") if path.is_symlink() or path.is_file()):
            if package not in _LIBRARIES:
                yield source, source.relative_to(place / "usr")
            elif source.parent.name == "x86_64-linux-gnu":  # not OpenSSL's engines
                yield source, Path("lib", source.name)


def _look_beside(tree: Path) -> None:
    """Make all search paths of the interpreter, its modules and libraries relative to the tree."""
    for pattern, beside in (("bin/python3.*", "../lib"), (f"{_MODULES}/lib-dynload/*.so", "../.."), ("lib/*.so*", ".")):
        files = [path for path in sorted(tree.glob(pattern)) if not path.is_symlink()]
        run(["patchelf", "--set-rpath", f"$ORIGIN/{beside}", *files])
    bootstrap = tree / _MODULES / "ensurepip/__init__.py"
    text = bootstrap.read_text()
    if _WHEELS[0] not in text:
        raise VendorBuildError(f"ensurepip of Python {VERSION} does not contain {_WHEELS[0]}; it is not bullseye's")
    bootstrap.write_text(text.replace(*_WHEELS))
