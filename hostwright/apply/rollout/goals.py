"""What a run wants of each of its hosts."""

from __future__ import annotations

from typing import Protocol

from hostwright.plan.desired import Desired
from hostwright.plan.member import Member


class Goal(Protocol):
    """What is wanted of each host of a run."""

    def desired(self, member: Member) -> Desired:
        """What the host shall be. Raises ``HostError`` for one that is not to be touched."""
        ...

    def departs(self, member: Member) -> bool:
        """Whether what Hostwright keeps on the host goes as well (``Settings.depart``)."""
        ...


class AsWanted:
    """Every host shall be what its stack and its roles want."""

    def desired(self, member: Member) -> Desired:
        """All states of the host's roles."""
        return member.desired

    def departs(self, member: Member) -> bool:  # noqa: ARG002 - of no host
        """What Hostwright keeps on a host stays there."""
        return False


AS_WANTED: Goal = AsWanted()
