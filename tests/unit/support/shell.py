"""Scripts of resources, run by the machine's own ``/bin/sh`` as the engine does: on standard input, with ``-eu``."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from hostwright.resources.originals import ORIGIN

ASK_S = 60  #: a probe that waits for ever fails its test
#: stands for ``root:root`` where the tests do not run as root
OWNER = f"{os.getuid()}:{os.getgid()}"


def run(script: str, *, path: Path | None = None, origin: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run a step's script; ``path`` is put before the programs' path, for stand-ins of dangerous programs.

    What a host keeps of its former state lies in ``origin``; without one, in a directory that is thrown away, never in
    this machine's own. Nothing waits for this machine's disk.
    """
    with tempfile.TemporaryDirectory() as thrown_away, tempfile.TemporaryDirectory() as programs:
        program(Path(programs), "sync", ":")
        first = f"{path}:" if path else ""
        env = {**os.environ, "LC_ALL": "C", "PATH": f"{first}{programs}:{os.environ['PATH']}"}
        text = script.replace(ORIGIN, str(origin or thrown_away))
        return subprocess.run(["/bin/sh", "-eu"], input=text.encode(), capture_output=True, check=False, env=env)


def ask(script: str, *, origin: Path | None = None) -> tuple[int, str]:
    """Run a probe's script; its exit status and output. ``origin`` as for ``run``."""
    text = script.replace(ORIGIN, str(origin)) if origin else script
    done = subprocess.run(["/bin/sh"], input=text.encode(), capture_output=True, check=False, timeout=ASK_S)
    return done.returncode, done.stdout.decode(errors="replace")


def program(folder: Path, name: str, script: str) -> Path:
    """A stand-in program in ``folder``."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
