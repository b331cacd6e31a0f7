"""Looking into people's homes, read-only and bounded: the number of homes, the time, and what comes back.

A home may lie on a file server that is away: everything that touches one stands under one ``timeout``.
"""

from __future__ import annotations

from hostwright.common.quoting import sh, sh_file
from hostwright.plan.model import Probe

MAX_HOMES = 500
LOOK_S = 5  #: for all homes together; local ones take some milliseconds


def homes_probe(script: str) -> Probe:
    """A probe for root whose ``script`` may use ``$(homes)``, one path a line. One that takes too long has status 124.

    ``homes.sh``, which stands before it, says what else it may use.
    """
    return Probe(
        sh("timeout -k 2 %s sh -c %s", LOOK_S, sh_file(__file__, "homes.sh", max_homes=MAX_HOMES) + script), root=True
    )
