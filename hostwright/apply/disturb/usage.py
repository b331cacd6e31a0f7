"""Who keeps, changes and uses a host: asked before its power is cut or its disks are wiped."""

from __future__ import annotations

from hostwright.plan.host import jobs, locks
from hostwright.plan.host.occupancy import Occupancies
from hostwright.plan.model import Facts, Probe
from hostwright.plan.observing import ask
from hostwright.transport.root.rootshell import RootShell

PROBES = (locks.LOCK, locks.RUN_LOCK, jobs.RUNNING)  #: who keeps and changes it
PROBE_TIMEOUT_S = 30.0  #: for a few short questions; one that hangs is what a power cycle is for


def probes(occupancy: Occupancies) -> tuple[Probe, ...]:
    """What is asked of a host whose users are known in these ways."""
    return (*PROBES, *occupancy.probes)


def probe_usage(shell: RootShell, occupancy: Occupancies) -> Facts:
    """Ask a host who keeps, changes and uses it. Raises ``HostError`` where it does not say."""
    return ask(shell, probes(occupancy), timeout_s=PROBE_TIMEOUT_S)


def jobs_left(facts: Facts) -> str:
    """The jobs of earlier runs that are still running on the host, as a sentence's beginning; empty without any."""
    names = ", ".join(job.id for job in jobs.running(facts)[:5])
    return f"a job from an earlier run is still running ({names})" if names else ""
