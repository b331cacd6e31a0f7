"""Files from packages of Debian bullseye, the only public source of NVIDIA's own builds of CUDA 11.2.2.

mmdebstrap sets up a separate apt (archive key, suite, components) and `apt-get download` runs inside it, so this
machine's packages stay untouched. Only the needed files of a package are kept: the static libraries have 1.5 GB
(measured: 22 s to skip them, download at 55 MB/s).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path

from lab import surroundings
from lab.locking import locked
from lab.programs import run_logged
from lab.vendor.model import VendorBuildError

SUITE = "bullseye"
COMPONENTS = "main contrib non-free"
UNPACKERS = 2
#: runs in mmdebstrap's apt; values are environment variables, so the hook needs no quoting
_HOOK = 'cd "$HOSTWRIGHT_OUT" && APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get -q download $HOSTWRIGHT_PACKAGES'


def trees(sources: Path, wanted: Mapping[str, Iterable[str]]) -> dict[str, Path]:
    """Return for each package of `wanted` a directory with its files that match the package's patterns.

    `sources` keeps the directories between builds. Patterns are tar's (`./usr/include/*`). A pattern without a match is
    an error.
    """
    sources.mkdir(parents=True, exist_ok=True)
    places = {package: sources / f"{package}-{_key(patterns)}" for package, patterns in wanted.items()}
    with locked("vendor-debian"):
        missing = [package for package, place in places.items() if not place.is_dir()]
        if missing:
            for left in sources.glob(".fetch.*"):  # leftovers of a killed build
                shutil.rmtree(left)
            with tempfile.TemporaryDirectory(prefix=".fetch.", dir=sources) as scratch:
                fetch(Path(scratch), missing)
                debs = {package: _only(Path(scratch), package) for package in missing}
                with ThreadPoolExecutor(UNPACKERS) as pool:  # decompression takes most of the time
                    unpacked = [pool.submit(_unpack, debs[name], places[name], wanted[name]) for name in missing]
                for one in unpacked:
                    one.result()
    return places


def fetch(directory: Path, packages: Iterable[str], suite: str = SUITE, components: str = COMPONENTS) -> None:
    """Download the newest `.deb` of each package of the suite into `directory`; apt verifies the signatures."""
    values = {"HOSTWRIGHT_OUT": str(directory), "HOSTWRIGHT_PACKAGES": " ".join(packages)}
    argv = [
        *("mmdebstrap", "--variant=custom", "--format=null", f"--components={components}"),
        *(f"--aptopt={line}" for line in surroundings.apt_settings()),
        '--aptopt=Acquire::Check-Valid-Until "false"',  # the lists of old suites have expired
        '--aptopt=Acquire::Languages "none"',
        '--aptopt=APT::Sandbox::User "root"',  # the user _apt cannot write to a private directory
        *(f"--customize-hook={_HOOK}", suite, "-", *mirror(suite, components)),
    ]
    run_logged(argv, directory.parent / "debian.log", env={**os.environ, **values})


def mirror(suite: str = SUITE, components: str = COMPONENTS) -> tuple[str, ...]:
    """Return the suite's apt source on this machine's mirror; an empty tuple selects mmdebstrap's default."""
    mirrors = surroundings.debian_mirrors()
    return (f"deb {mirrors[0]} {suite} {components}",) if mirrors else ()


def _key(patterns: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(sorted(patterns)).encode()).hexdigest()[:10]


def _widest(patterns: Iterable[str]) -> list[str]:
    """Drop patterns that another pattern covers.

    tar assigns a file to one pattern only and reports the other as missing.
    """
    unique = set(patterns)
    return sorted(one for one in unique if not any(one != other and fnmatch(one, other) for other in unique))


def _only(directory: Path, package: str) -> Path:
    """Return the only `.deb` of a package in a directory; apt chooses its version."""
    found = list(directory.glob(f"{package}_*.deb"))
    if len(found) != 1:
        raise VendorBuildError(f"apt-get download of {package} from {SUITE} produced {len(found)} files, expected one")
    return found[0]


def _unpack(deb: Path, place: Path, patterns: Iterable[str]) -> None:
    """Unpack the matching files of `deb` into `place`, which is created by rename when they are complete."""
    temporary = Path(tempfile.mkdtemp(prefix=".unpack.", dir=deb.parent))
    extract = ["tar", "-x", "-C", str(temporary), "--no-same-owner", "--wildcards", *_widest(patterns)]
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as source:
        done = subprocess.run(extract, stdin=source.stdout, capture_output=True, text=True, check=False)
    if done.returncode != 0 or source.returncode != 0:
        raise VendorBuildError(f"{deb.name} lacks a required file: {done.stderr.strip()}")
    deb.unlink()  # its other files have hundreds of megabytes
    temporary.chmod(0o755)
    temporary.rename(place)
