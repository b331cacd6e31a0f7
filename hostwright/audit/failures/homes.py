"""A probe of users' home directories, with limits on the number of homes, the time and the output size.

A home may be on a file server that does not respond, so the whole script runs under ``timeout``.
"""

from __future__ import annotations

from hostwright.common.quoting import sh, sh_file
from hostwright.plan.model import PROBE_CAP_BYTES, Probe

MAX_HOMES = 500
LOOK_S = 5  #: time limit in seconds for the search of all home directories together


def homes_probe(script: str, cap_bytes: int = PROBE_CAP_BYTES) -> Probe:
    """Return a probe that runs ``script`` as root. In the script, ``$(homes)`` prints the home directories, one path
    per line.

    At the time limit, the exit status is 124. The script may also use ``$nl``, a line feed.
    """
    return Probe(
        sh("timeout -k 2 %s sh -c %s", LOOK_S, sh_file(__file__, "homes.sh", max_homes=MAX_HOMES) + script),
        root=True,
        cap_bytes=cap_bytes,
    )
