"""Runs scripts or commands in their own mount namespace, with real filesystems."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest

ROOT = os.getuid() == 0
_UNSHARE = ["unshare", "--mount"] if ROOT else ["unshare", "--map-root-user", "--mount"]


@cache
def _allowed() -> bool:
    mount = [*_UNSHARE, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(mount, check=False, capture_output=True).returncode == 0


def in_namespace(script: str, umask: int = 0o022, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a script of ``/bin/sh`` as root with its own mounts; skip the test if the machine forbids this."""
    if not _allowed():
        pytest.skip("this machine lets nobody mount")
    return subprocess.run(
        [*_UNSHARE, "/bin/sh", "-eu"],
        input=script,
        capture_output=True,
        text=True,
        check=False,
        umask=umask,
        env={**os.environ, "LC_ALL": "C", **env},
    )


@contextmanager
def mounts(*commands: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Start a process with its own mounts, created by these commands of ``/bin/sh``; yield the command prefix that
    enters it.
    """
    script = "\n".join((*commands, "echo", "exec sleep 3600"))
    with subprocess.Popen([*_UNSHARE, "/bin/sh", "-ec", script], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"\n", "this machine lets nobody mount"
            inside = () if ROOT else ("-U", "--preserve-credentials")
            yield process.pid, ("nsenter", *inside, "-m", "-t", str(process.pid))
        finally:
            process.kill()
