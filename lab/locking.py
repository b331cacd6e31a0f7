"""Lock files with one holder each: commands on the same lab or image wait for each other; a killed holder releases
it."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_DIRECTORY = Path("/run/hostwright-lab")  # emptied when the machine boots, as locks should be


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the machine-wide lock ``name`` for the body; waits for whoever holds it."""
    _DIRECTORY.mkdir(mode=0o700, exist_ok=True)
    with (_DIRECTORY / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
