"""Find the stacks that fit hosts, from stored or new facts of the hosts."""

from __future__ import annotations

from hostwright.apply.rollout.connections import Connections
from hostwright.apply.rollout.rollout import Results, on_each
from hostwright.audit.history.facts import FactStore
from hostwright.common.places import state_root
from hostwright.plan.host.hostfacts import HOST_PROBES, read_host
from hostwright.plan.observing import ask as ask_host
from hostwright.plan.stacks.fits import HostFits, fits
from hostwright.plan.stacks.listing import list_stacks
from hostwright.plan.targets import Roster, TargetHost, Targets
from hostwright.stack.ages import day_of


def fitting_stacks(roster: Roster, targets: Targets, connections: Connections, *, ask: bool) -> Results[HostFits]:
    """Return the stacks that fit each host, the best first, or the error of a host that could not be read.

    With ``ask``, hosts are probed even if facts of their last audit are stored.
    """
    stored = FactStore(state_root())
    stacks = tuple(listed.stack for listed in list_stacks(roster) if listed.stack)
    by_name, today = targets.by_name, day_of(None)

    def facts_of(target: TargetHost) -> HostFits:
        known = None if ask else stored.load(roster.path, target.name)
        if known and all(probe in known[0] for probe in HOST_PROBES):
            return HostFits(target.name, read_host(known[0]), known[1].isoformat(timespec="minutes"))
        with connections.connect(target) as shell:
            return HostFits(target.name, read_host(ask_host(shell, HOST_PROBES)))

    def of_host(name: str) -> HostFits:
        host = facts_of(by_name[name])
        found = fits(host.facts, stacks, roster.roles, roster.advisories, today)
        return HostFits(host.host, host.facts, host.stored, found)

    return on_each(tuple(by_name), of_host, stop=connections.close)
