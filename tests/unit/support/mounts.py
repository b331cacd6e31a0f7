"""Real filesystems for a script: a mount namespace of its own, in which it may mount what it likes."""

from __future__ import annotations

import os
import subprocess
from functools import cache

import pytest

_UNSHARE = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--map-root-user", "--mount"]


@cache
def _allowed() -> bool:
    mount = [*_UNSHARE, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(mount, check=False, capture_output=True).returncode == 0


def in_namespace(script: str, umask: int = 0o022, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a script of ``/bin/sh`` as root with mounts of its own; skip the test where the machine forbids it."""
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
