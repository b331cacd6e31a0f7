"""Who has locked a host, who changes it and who uses it: probed before its power is cut or its disks are wiped."""

from __future__ import annotations

from hostwright.plan.host import jobs, locks
from hostwright.plan.host.occupancy import Occupancies
from hostwright.plan.model import Facts, Probe
from hostwright.plan.observing import ask
from hostwright.transport.root.rootshell import RootShell

PROBES = (locks.LOCK, locks.RUN_LOCK, jobs.RUNNING)  #: who has locked it, and who changes it
PROBE_TIMEOUT_S = 30.0  #: for a few short probes; a host that hangs on one is what a power cycle is for


def probes(occupancy: Occupancies) -> tuple[Probe, ...]:
    """The probes of a host whose users are known in these ways."""
    return (*PROBES, *occupancy.probes)


def probe_usage(shell: RootShell, occupancy: Occupancies) -> Facts:
    """The facts of a host about its locks, its jobs and its users. Raises ``HostError`` where it does not answer."""
    return ask(shell, probes(occupancy), timeout_s=PROBE_TIMEOUT_S)


def jobs_left(facts: Facts) -> str:
    """The jobs of earlier runs that are still running on the host, as the beginning of a sentence; empty if none."""
    names = ", ".join(job.id for job in jobs.running(facts)[:5])
    return f"a job from an earlier run is still running ({names})" if names else ""
