"""Generator of constraints with hashes: this machine's pip resolves requirements for any Python, and installs nothing.

Index, proxy and certificates are from pip's own settings. If the index serves metadata separately (PEP 658) or supports
range requests, pip downloads no whole wheels.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from hostwright.common.errors import InputError
from hostwright.common.text import printable
from hostwright.common.untrusted import Pattern
from hostwright.resources.python.wheels import pip_errors, platforms

#: time limit in seconds for pip to resolve requirements, our estimate for an index without separate metadata
_RESOLVE_TIMEOUT_S = 3600.0
_SHA256 = Pattern(r"[0-9a-f]{64}")

#: program that runs pip for the Python version in the first argument, because pip would evaluate markers
#: (``python_version < "3.12"``) for the running Python (pypa/pip#11664)
_PIP = """\
import runpy, sys
from pip._internal.cli.req_command import RequirementCommand as Command
from pip._vendor.packaging import markers
python, there, made = sys.argv.pop(1), markers.default_environment, Command.make_resolver
linux = {"os_name": "posix", "sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64"}
cpython = {"implementation_name": "cpython", "platform_python_implementation": "CPython"}
version = {"python_version": python, "python_full_version": python + ".0", "implementation_version": python + ".0"}
markers.default_environment = lambda: {**there(), **linux, **cpython, **version}
Command.make_resolver = classmethod(lambda _, *a, **kw: made(*a, **{**kw, "py_version_info": (3, int(python[2:]))}))
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""


def pinned(requirements: Sequence[str], python: str, glibc: int) -> str:
    """Text of a constraints file for ``requirements`` and all their dependencies, for one Python (``3.12``).

    Each pin has the hash and the name of a wheel for x86_64 and glibc 2.``glibc``. Raises ``InputError`` if pip finds
    no such wheels.
    """
    report = _resolved(requirements, python, glibc)
    if report.get("environment", {}).get("python_version") != python:
        raise InputError(f"{sys.executable}: its pip cannot resolve requirements for another Python; upgrade pip")
    lines = sorted(map(_line, report["install"]), key=lambda line: line.partition("=")[0])
    asked = " ".join(requirements)
    head = f"# What {asked} needs on Python {python} (x86_64, glibc 2.{glibc} or newer), by `hostwright pins`.\n"
    return head + "".join(f"{line}\n" for line in lines)


def _line(package: Mapping[str, Any]) -> str:
    metadata, source = package["metadata"], package["download_info"]
    file = unquote(urlsplit(source["url"]).path.rpartition("/")[2])
    digest = source.get("archive_info", {}).get("hashes", {}).get("sha256", "")
    try:
        parse_wheel_filename(file)
    except InvalidWheelFilename:
        raise InputError(
            f"pip chose {printable(file)!r} for {printable(metadata['name'])}, but only wheels can be pinned"
        ) from None
    if not _SHA256.fullmatch(digest):
        raise InputError(
            f"the package index has no sha256 of {file}; configure an index that has it (`pip config set`)"
        )
    return f"{canonicalize_name(metadata['name'])}=={metadata['version']} --hash=sha256:{digest}  # {file}"


def _resolved(requirements: Sequence[str], python: str, glibc: int) -> Mapping[str, Any]:
    with tempfile.TemporaryDirectory(prefix="hostwright-pins-") as folder:
        report = Path(folder) / "report.json"
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-c", _PIP, python, *_words(python, glibc, folder), "--", *requirements],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_RESOLVE_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise InputError(
                f"pip did not resolve the requirements within {_RESOLVE_TIMEOUT_S:.0f} s", f"Python {python}"
            ) from None
        if done.returncode != 0:
            sentence = "; ".join(dict.fromkeys(pip_errors(done.stderr))) or "pip printed no error"
            raise InputError(f"pip found no compatible set of wheels: {sentence}", f"Python {python}")
        read: Mapping[str, Any] = json.loads(report.read_text("utf-8"))
        return read


def _words(python: str, glibc: int, folder: str) -> Iterator[str]:
    yield from ("install", "--dry-run", "--ignore-installed", "--quiet", "--no-input", "--disable-pip-version-check")
    yield "--use-feature=fast-deps"  # pip would download whole wheels from an index without separate metadata
    yield from ("--only-binary=:all:", f"--target={folder}", f"--report={folder}/report.json")
    yield from ("--implementation=cp", f"--python-version={python}", f"--abi=cp{python.replace('.', '')}")
    # pip prefers the first platforms, and wheels for the oldest glibc run everywhere
    yield from (f"--platform={platform}" for platform in platforms(glibc))
