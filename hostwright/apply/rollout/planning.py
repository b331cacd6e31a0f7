"""Plans of many hosts."""

from __future__ import annotations

from hostwright.apply.rollout.connections import Connections
from hostwright.apply.rollout.goals import AS_WANTED, Goal
from hostwright.apply.rollout.rollout import Results, on_each
from hostwright.plan.planning import HostPlan
from hostwright.plan.targets import Targets


def plan_each(targets: Targets, connections: Connections, goal: Goal = AS_WANTED) -> Results[HostPlan]:
    """Probe each host and plan; nothing is changed. Errors of hosts are in the results."""
    by_name = targets.by_name

    def of_host(name: str) -> HostPlan:
        return connections.plan(by_name[name], desired=goal.desired(by_name[name]))

    return on_each(tuple(by_name), of_host, stop=connections.close)
