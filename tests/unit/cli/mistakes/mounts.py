"""Directories of one's own over those of this machine: what is typed in there finds them full, read-only or empty."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

ROOT = os.getuid() == 0


@contextmanager
def mounts(*commands: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """A process with mounts of its own, which these commands of ``/bin/sh`` make, and the words that enter it."""
    unshare = ("unshare", *(() if ROOT else ("--map-root-user",)), "-m")
    script = "\n".join((*commands, "echo", "exec sleep 3600"))
    with subprocess.Popen([*unshare, "/bin/sh", "-ec", script], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"\n", "this machine lets nobody mount"
            inside = () if ROOT else ("-U", "--preserve-credentials")
            yield process.pid, ("nsenter", *inside, "-m", "-t", str(process.pid))
        finally:
            process.kill()
