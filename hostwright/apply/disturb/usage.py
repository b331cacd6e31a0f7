"""The locks, jobs and users of a host, for the check before its power is cut or its disks are wiped."""

from __future__ import annotations

from hostwright.plan.host import jobs, locks
from hostwright.plan.host.occupancy import Occupancies
from hostwright.plan.model import Facts, Probe
from hostwright.plan.observing import ask
from hostwright.transport.root.rootshell import RootShell

PROBES = (locks.LOCK, locks.RUN_LOCK, jobs.RUNNING)
#: time limit in seconds of the probes for users of a host. A longer limit delays the power cycle of a host that hangs.
PROBE_TIMEOUT_S = 30.0


def probes(occupancy: Occupancies) -> tuple[Probe, ...]:
    """Return the probes of a host's locks, jobs and users. ``occupancy`` has the probes of the users."""
    return (*PROBES, *occupancy.probes)


def probe_usage(shell: RootShell, occupancy: Occupancies) -> Facts:
    """Return the facts about a host's locks, jobs and users.

    Raises ``HostError`` if the host does not answer.
    """
    return ask(shell, probes(occupancy), timeout_s=PROBE_TIMEOUT_S)


def jobs_left(facts: Facts) -> str:
    """Return the start of a sentence that names the jobs of earlier runs that still run on the host; empty if none."""
    names = ", ".join(job.id for job in jobs.running(facts)[:5])
    return f"a job from an earlier run is still running ({names})" if names else ""
