"""Wheels of a venv as single files: choice for a Python version, and download to this machine.

Wheels are chosen from a list with hashes and not from an index, so that a plan can name them. This machine's pip
downloads them, with the index, proxy and certificates of its own settings (``pip config list``).
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from hostwright.common.errors import ArtifactError
from hostwright.common.text import one_line, printable
from hostwright.common.untrusted import Pattern, whole
from hostwright.resources.python.hashes import listed_wheels
from hostwright.stack.stack import IndexFile
from hostwright.stack.store.fetching import Unreached

INDEX = "pip's package index"
#: minor versions of glibc 2.x: the oldest that wheels use, one that all hosts have, and the newest
_GLIBC_OLDEST, _GLIBC_COMMON, _GLIBC_NEWEST = 5, 17, 45
#: minor version of glibc → platform name that PEP 600 replaced
_LEGACY = {5: "manylinux1", 12: "manylinux2010", 17: "manylinux2014"}
_MACHINE = "x86_64"
_BRING_TIMEOUT_S = 3600.0  #: time limit in seconds for downloading a wheel, our estimate for 0.5 GB at 0.15 MB/s
_AWAY = Pattern(r"Retrying \(Retry\(|Could not fetch URL|Connection(?:Reset)?Error|Read ?[Tt]imed out|ReadTimeout")
_CAUSE = Pattern(r"\[Errno -?\d+\] [^'\")\[\]]{1,200}|[Tt]imed out|ProxyError|SSLError")
_OTHER = Pattern(r"(?m)^\s*Got\s+([0-9a-f]{64})\b")
_CREDENTIALS = Pattern(r"//[^/@\s]{1,500}@")


class Wheel(IndexFile):
    """A wheel to fetch from an index, with its package, version and Python version (``3.9``)."""

    package: str
    version: str
    python: str

    def bring(self, folder: Path) -> Path:
        """Download exactly this wheel with pip to the empty directory ``folder``; return its path.

        Raises ``ArtifactError`` if the index cannot be reached or lacks this wheel.
        """
        pinned = f"{self.package}=={self.version} --hash=sha256:{self.sha256}\n"
        try:
            done = subprocess.run(
                [*_pip(), *_target(self.file, self.python), "--dest", str(folder)],
                input=pinned,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_BRING_TIMEOUT_S,
                check=False,
                # pip needs no venv for a download, although a user's settings may require one
                env={**os.environ, "PIP_REQUIRE_VIRTUALENV": "0"},
            )
        except subprocess.TimeoutExpired:
            raise Unreached(INDEX, f"did not send {self.file} within {_BRING_TIMEOUT_S:.0f} s", _CURE) from None
        brought = next(iter(sorted(folder.glob("*.whl"))), None)
        if done.returncode != 0 or brought is None:
            raise self._failure(done.stderr)
        return brought

    def _failure(self, output: str) -> ArtifactError:
        if other := _OTHER.search(output):
            return ArtifactError(
                f"{INDEX} has another wheel of {self.package} {self.version} than the stack pins ({self.file}). Its "
                f"sha256 is {other[1]}, expected {self.sha256}; the download was deleted"
            )
        if _AWAY.search(output):
            why = _CAUSE.search(output)
            reason = printable(one_line(why[0].partition("] ")[2] or why[0])) if why else "no connection"
            return Unreached(INDEX, f"cannot be reached ({reason})", _CURE)
        return ArtifactError(
            f"{INDEX} does not serve {self.package} {self.version} for Python {self.python} ({self.file}); error "
            f"of pip: {(pip_errors(output) or ['nothing'])[-1]}"
        )


def pip_errors(output: str) -> list[str]:
    """Error lines in pip's standard error output, else the last line; without credentials."""
    errors = [line for line in output.splitlines() if line.startswith("ERROR: ")] or output.splitlines()[-1:]
    return [printable(_CREDENTIALS.sub("//", one_line(line.removeprefix("ERROR: "))))[:300] for line in errors]


_CURE = "is this machine online, and does `pip config list` name the right index?"


def _pip() -> list[str]:
    """Raises ``Unreached`` if this machine has no pip, neither in the running Python nor on PATH."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-P", "-m", "pip"]  # -P prevents imports from the working directory
    found = shutil.which("pip3") or shutil.which("pip")
    if found is None:
        raise Unreached("pip", "is not installed on this machine", f"run `{sys.executable} -m ensurepip`;")
    return [found]


def _target(file: str, python: str) -> list[str]:
    """Return the arguments with which pip downloads exactly this wheel.

    Hashes are not enough, because an index may not publish hashes.
    """
    tags = parse_wheel_filename(file)[3]
    return [
        *("download", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"),
        *("--implementation=cp", f"--python-version={python}", "--ignore-requires-python"),
        *(f"--abi={abi}" for abi in sorted({tag.abi for tag in tags})),
        *(f"--platform={platform}" for platform in sorted({tag.platform for tag in tags})),
        *("--require-hashes", "--requirement", "/dev/stdin"),
    ]


def choose_wheels(pins: Iterable[tuple[str, str]], listed: str, python: str) -> tuple[Wheel, ...]:
    r"""For each pin, the wheel in ``listed`` that fits this Python and needs the oldest glibc; pins without such a
    wheel are omitted.

    ``listed`` is in the format of ``sha256sum``. Of two lines with the same name, the last is used.

    >>> stem = "science-2.9-cp39-cp39-manylinux"
    >>> text = f"{'5' * 64}  {stem}_2_28_x86_64.whl\n{'6' * 64}  {stem}2014_x86_64.whl\n"
    >>> [(wheel.name, wheel.file) for wheel in choose_wheels([("science", "2.9")], text, "3.9")]
    [('science-2.9-cp39-cp39', 'science-2.9-cp39-cp39-manylinux2014_x86_64.whl')]
    >>> choose_wheels([("science", "2.9")], text, "3.10")
    ()
    """
    known = _best(listed, python)
    return tuple(known[pin] for pin in pins if pin in known)


@lru_cache(maxsize=64)  # parsing a list of wheels takes milliseconds, and many hosts share a list
def _best(listed: str, python: str) -> Mapping[tuple[str, str], Wheel]:
    places = _places(python)
    best: dict[tuple[str, str], tuple[tuple[int, int], Wheel]] = {}
    for sha256, file, pin, tags in listed_wheels(listed):
        fitting = [places[tag] for tag in tags if tag in places]
        if fitting and (pin not in best or min(fitting) <= best[pin][0]):
            best[pin] = (min(fitting), _wheel(file, sha256, pin, python))
    return {pin: wheel for pin, (_, wheel) in best.items()}


def _wheel(file: str, sha256: str, pin: tuple[str, str], python: str) -> Wheel:
    tags = "-".join(file.removesuffix(".whl").split("-")[-3:-1])
    name = f"{pin[0]}-{pin[1]}-{tags}".lower().replace("_", "-")
    return Wheel(name=name, file=file, sha256=sha256, package=pin[0], version=pin[1], python=python)


@lru_cache(maxsize=16)
def _places(python: str) -> Mapping[Tag, tuple[int, int]]:
    series = Version(python).release
    known = list(platforms())
    tags = [*cpython_tags(series, _abis(python), known), *compatible_tags(series, f"cp{series[0]}{series[1]}", known)]
    return {tag: (glibc_of(tag.platform), place) for place, tag in enumerate(tags)}


def _abis(python: str) -> list[str]:
    series = python.replace(".", "")
    return [f"cp{series}m" if python == "3.7" else f"cp{series}"]


def platforms(newest: int = _GLIBC_NEWEST) -> Iterator[str]:
    """Platform tags of wheels that run on x86_64 with glibc 2.``newest``, the tags for the oldest glibc first."""
    yield f"linux_{_MACHINE}"
    for minor in range(_GLIBC_OLDEST, newest + 1):
        yield f"manylinux_2_{minor}_{_MACHINE}"
        if minor in _LEGACY:
            yield f"{_LEGACY[minor]}_{_MACHINE}"


def glibc_of(platform: str) -> int:
    """Minor version of glibc 2.x that a wheel for this platform needs, at least 17."""
    minor = whole(platform.removeprefix("manylinux_2_").removesuffix(f"_{_MACHINE}"))
    return max(minor or 0, _GLIBC_COMMON)
