"""Labs for tests: each starts empty and is removed at the end, also after a run that was killed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from lab import fleet
from lab.config import Lab
from lab.locking import locked
from lab.records import open_lab


def kept() -> bool:
    """Whether a lab is kept and reused, to run one test repeatedly."""
    return bool(os.environ.get("HOSTWRIGHT_KEEP_LAB"))


@contextmanager
def own_lab(name: str) -> Iterator[Lab]:
    """Open a lab for the body only. Waits for another run of the lab, then removes leftovers of a killed run."""
    with locked(f"tests-{name}"):
        if not kept():
            fleet.down(open_lab(name))
        opened = open_lab(name)
        try:
            yield opened
        finally:
            if not kept():
                fleet.down(opened)
