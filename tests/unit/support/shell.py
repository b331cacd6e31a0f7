"""Runs scripts of resources with this machine's ``/bin/sh`` like the engine: on standard input, with ``-eu``."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from hostwright.resources.originals import ORIGIN

ASK_S = 60  #: timeout, so that an endless probe fails its test
#: replaces ``root:root`` if the tests do not run as root
OWNER = f"{os.getuid()}:{os.getgid()}"


def run(script: str, *, path: Path | None = None, origin: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run a step's script; ``path`` is prepended to PATH, for stand-ins of dangerous programs.

    ``origin`` is the directory with the host's former state; the default is a temporary directory, never this machine's
    own. Disk syncs are disabled.
    """
    with tempfile.TemporaryDirectory() as thrown_away, tempfile.TemporaryDirectory() as programs:
        program(Path(programs), "sync", ":")
        first = f"{path}:" if path else ""
        env = {**os.environ, "LC_ALL": "C", "PATH": f"{first}{programs}:{os.environ['PATH']}"}
        text = script.replace(ORIGIN, str(origin or thrown_away))
        return subprocess.run(["/bin/sh", "-eu"], input=text.encode(), capture_output=True, check=False, env=env)


def ask(script: str, *, origin: Path | None = None) -> tuple[int, str]:
    """Run a probe's script; return its exit status and output. ``origin`` as for ``run``."""
    text = script.replace(ORIGIN, str(origin)) if origin else script
    done = subprocess.run(["/bin/sh"], input=text.encode(), capture_output=True, check=False, timeout=ASK_S)
    return done.returncode, done.stdout.decode(errors="replace")


def program(folder: Path, name: str, script: str) -> Path:
    """Write a stand-in program to ``folder``."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
