"""Labs that tests open: each begins with nothing in it and leaves nothing, whatever became of the run before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from lab import fleet
from lab.config import Lab
from lab.locking import locked
from lab.records import open_lab


def kept() -> bool:
    """Whether hosts of an earlier run are used again and stay: to run one test again and again."""
    return bool(os.environ.get("HOSTWRIGHT_KEEP_LAB"))


@contextmanager
def own_lab(name: str) -> Iterator[Lab]:
    """A lab for the body alone: what a killed run left of it goes first, and a run beside this one is awaited."""
    with locked(f"tests-{name}"):
        if not kept():
            fleet.down(open_lab(name))
        opened = open_lab(name)
        try:
            yield opened
        finally:
            if not kept():
                fleet.down(opened)
