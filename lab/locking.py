"""Exclusive lock files, so that only one command at a time works on a lab or an image."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# directory of the lock files. A reboot empties the directory.
_DIRECTORY = Path("/run/hostwright-lab")


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the machine-wide lock ``name`` during the context."""
    _DIRECTORY.mkdir(mode=0o700, exist_ok=True)
    with (_DIRECTORY / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
