"""Files out of Debian bullseye's packages, the one public place that carries NVIDIA's own builds of CUDA 11.2.2.

mmdebstrap sets up an apt of its own (archive key, suite, components) and `apt-get download` runs inside it, so the
machine's packages are never touched. Of each package only the wanted files are kept: the static libraries are
1.5 GB that nobody needs (22 s to read past them, 55 MB/s fetched; measured).
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
#: runs in mmdebstrap's apt; the values arrive in the environment, so nothing is quoted into the hook
_HOOK = 'cd "$HOSTWRIGHT_OUT" && APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get -q download $HOSTWRIGHT_PACKAGES'


def trees(sources: Path, wanted: Mapping[str, Iterable[str]]) -> dict[str, Path]:
    """Return, for each package of `wanted`, a directory with those of its files that match its patterns.

    `sources` keeps them between builds. Patterns are tar's (`./usr/include/*`); one that matches nothing is an error.
    """
    sources.mkdir(parents=True, exist_ok=True)
    places = {package: sources / f"{package}-{_key(patterns)}" for package, patterns in wanted.items()}
    with locked("vendor-debian"):
        missing = [package for package, place in places.items() if not place.is_dir()]
        if missing:
            for left in sources.glob(".fetch.*"):  # of a killed build
                shutil.rmtree(left)
            with tempfile.TemporaryDirectory(prefix=".fetch.", dir=sources) as scratch:
                fetch(Path(scratch), missing)
                debs = {package: _only(Path(scratch), package) for package in missing}
                with ThreadPoolExecutor(UNPACKERS) as pool:  # decompression is what takes the time
                    unpacked = [pool.submit(_unpack, debs[name], places[name], wanted[name]) for name in missing]
                for one in unpacked:
                    one.result()
    return places


def fetch(directory: Path, packages: Iterable[str], suite: str = SUITE, components: str = COMPONENTS) -> None:
    """Download the newest `.deb` of each package of the suite into `directory`, checked by apt's signatures."""
    values = {"HOSTWRIGHT_OUT": str(directory), "HOSTWRIGHT_PACKAGES": " ".join(packages)}
    argv = [
        *("mmdebstrap", "--variant=custom", "--format=null", f"--components={components}"),
        *(f"--aptopt={line}" for line in surroundings.apt_settings()),
        '--aptopt=Acquire::Check-Valid-Until "false"',  # the old suite's lists are past their date
        '--aptopt=Acquire::Languages "none"',
        '--aptopt=APT::Sandbox::User "root"',  # apt's own user may not write into a private directory
        *(f"--customize-hook={_HOOK}", suite, "-", *mirror(suite, components)),
    ]
    run_logged(argv, directory.parent / "debian.log", env={**os.environ, **values})


def mirror(suite: str = SUITE, components: str = COMPONENTS) -> tuple[str, ...]:
    """Return the suite's apt source on the machine's own mirror, or nothing for mmdebstrap's default."""
    mirrors = surroundings.debian_mirrors()
    return (f"deb {mirrors[0]} {suite} {components}",) if mirrors else ()


def _key(patterns: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(sorted(patterns)).encode()).hexdigest()[:10]


def _widest(patterns: Iterable[str]) -> list[str]:
    """Drop the patterns that another one covers: tar credits a file to one pattern and misses the other."""
    unique = set(patterns)
    return sorted(one for one in unique if not any(one != other and fnmatch(one, other) for other in unique))


def _only(directory: Path, package: str) -> Path:
    """Return the one `.deb` of a package in a directory (its version is apt's choice)."""
    found = list(directory.glob(f"{package}_*.deb"))
    if len(found) != 1:
        raise VendorBuildError(f"apt-get download of {package} from {SUITE} left {len(found)} files, expected one")
    return found[0]


def _unpack(deb: Path, place: Path, patterns: Iterable[str]) -> None:
    """Unpack the files of `deb` that match into `place`, which appears only when they are complete."""
    temporary = Path(tempfile.mkdtemp(prefix=".unpack.", dir=deb.parent))
    extract = ["tar", "-x", "-C", str(temporary), "--no-same-owner", "--wildcards", *_widest(patterns)]
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as source:
        done = subprocess.run(extract, stdin=source.stdout, capture_output=True, text=True, check=False)
    if done.returncode != 0 or source.returncode != 0:
        raise VendorBuildError(f"{deb.name} does not hold what is looked for in it: {done.stderr.strip()}")
    deb.unlink()  # its wanted files are kept, the rest would be hundreds of megabytes
    temporary.chmod(0o755)
    temporary.rename(place)
