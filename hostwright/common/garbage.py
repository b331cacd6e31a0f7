"""Configures Python's garbage collector."""

import atexit
import gc

#: number of allocations between two garbage collections (Python's default: 700). A plan creates 150,000 lasting
#: objects.
ALLOCATIONS = 200_000


def collect_seldom() -> None:
    """Run Python's garbage collector rarely, and at exit not at all for imported modules.

    This saves 22 % of the processor time of a plan (0.70 s → 0.55 s).
    """
    gc.set_threshold(ALLOCATIONS, 10, 10)
    atexit.register(gc.freeze)
