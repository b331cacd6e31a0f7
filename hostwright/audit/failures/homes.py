"""Reading users' home directories, with limits on their number, the time and the size of the answer.

A home may lie on a file server that does not respond, so everything that touches one runs under one ``timeout``.
"""

from __future__ import annotations

from hostwright.common.quoting import sh, sh_file
from hostwright.plan.model import PROBE_CAP_BYTES, Probe

MAX_HOMES = 500
LOOK_S = 5  #: for all homes together; local ones take some milliseconds


def homes_probe(script: str, cap_bytes: int = PROBE_CAP_BYTES) -> Probe:
    """A probe that needs root, whose ``script`` may use ``$(homes)``, one path a line. On a timeout its status is 124.

    ``homes.sh`` is put before the script, and says what else it may use.
    """
    return Probe(
        sh("timeout -k 2 %s sh -c %s", LOOK_S, sh_file(__file__, "homes.sh", max_homes=MAX_HOMES) + script),
        root=True,
        cap_bytes=cap_bytes,
    )
