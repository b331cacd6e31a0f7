"""The public way in: load an inventory, name hosts, and look at, change or check them.

    fleet = Fleet.load()
    for member in fleet.members("@rack3,!gpu05"):
        with member.connect() as shell:
            plan = make_plan(member.desired, observe(shell, member.desired))

The front door (``hostwright.cli``) uses nothing else.
"""

from __future__ import annotations

from hostwright.apply.host.variables import read_apply_variables
from hostwright.common.errors import Mistakes
from hostwright.inventory import Host
from hostwright.plan.member import DEFAULT_INVENTORY, DEFAULT_STACK, PROJECT, Member, Roster
from hostwright.rebuild.ways.means import read_means

__all__ = ["DEFAULT_INVENTORY", "DEFAULT_STACK", "PROJECT", "Fleet", "Member"]


class Fleet(Roster):
    """A roster of which every room has read its own variables: a mistake is an error before any host is touched."""

    def _check(self, host: Host) -> None:
        mistakes = Mistakes()
        with mistakes:
            read_apply_variables(host)
        with mistakes:
            read_means(host)
        mistakes.refuse()
