"""Configures Python's garbage collector."""

import atexit
import gc

#: Number of allocations between two collections. Python's default is 700. A plan creates 150,000 objects that stay in
#: use, and at most 40 MB of garbage accumulates between collections.
ALLOCATIONS = 200_000


def collect_seldom() -> None:
    """Run the garbage collector rarely, and keep it from visiting imported modules when the process exits.

    This saves 22 % of the processor time of a plan (0.70 s → 0.55 s).
    """
    gc.set_threshold(ALLOCATIONS, 10, 10)
    atexit.register(gc.freeze)
