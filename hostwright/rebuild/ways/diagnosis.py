"""Diagnosis of a host before its rebuild, as values, and the conversion of errors to them."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from hostwright.audit.failures import Treatment
from hostwright.audit.fleetaudit import HostAudit
from hostwright.common.errors import BecomeError, Finding, HostError, HostwrightError, Unreachable
from hostwright.plan.model import Deferred, Plan, Planned, Reboot, Refusal
from hostwright.rebuild.rebuild import Rebuild, Way
from hostwright.resources.system import room
from hostwright.transport.identity.hostkeys import HostKeyMismatch

#: answers: login and probes succeeded · key changed: the host key differs from the recorded one · silent: nothing
#: answers at its address · refused login: it answers but refuses the login, or its key or name is unknown · no root:
#: sudo failed · unreadable: its answer is invalid · no way: this machine, its name service or a jump host failed, which
#: does not indicate the host's state
Reach = Literal["answers", "key changed", "silent", "refused login", "no root", "unreadable", "no way"]
#: power state from the BMC; unknown if it failed or does not report it
Power = Literal["on", "off", "turning on", "turning off", "unknown"]
#: how a host can be reinstalled: over its BMC, by the site's own command, or not at all
Reinstall = Literal["redfish", "command", ""]

#: Period in which an equal failure counts as a repetition. Our choice: a card that falls off the bus three times in a
#: month is broken; one that does so every other year is not.
LATELY = timedelta(days=30)

_OUR_NETWORK = (errno.ENETUNREACH, errno.ENETDOWN)  #: this machine has no route or no network


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Findings on a host. ``sentence`` is the error of its probes, and ``power_sentence`` the error of its BMC.

    ``power`` is ``None`` if the inventory has no BMC. ``audit`` and ``plan`` are ``None`` if the host could not be
    probed. ``history`` has the rebuilds of this host within ``LATELY``, in any order, and ``tried`` the ways that this
    rebuild has taken. ``treatments`` has the treatment of each known failure, by name. ``running`` are the users at
    work on the host, and ``disturbed`` those whom ``plan`` would disturb.
    """

    host: str
    reach: Reach
    sentence: str = ""
    power: Power | None = None
    power_sentence: str = ""
    audit: HostAudit | None = None
    plan: Plan | None = None
    boot_id: str = ""
    history: tuple[Rebuild, ...] = ()
    tried: tuple[Way, ...] = ()
    can_reinstall: Reinstall = ""
    treatments: Mapping[str, Treatment] = field(default_factory=dict)
    running: tuple[str, ...] = ()
    disturbed: tuple[str, ...] = ()

    @property
    def has_bmc(self) -> bool:
        """Whether the inventory has a BMC for the host."""
        return self.power is not None

    @property
    def off(self) -> bool:
        """Whether the BMC reports that the host is off or turning off."""
        return self.power in ("off", "turning off")

    @property
    def foreign_bmc(self) -> bool:
        """Whether the host answers at its address while its BMC reports off.

        The BMC then belongs to another host, whose power must not be cut, and which must not be reinstalled.
        """
        return self.off and self.reach not in ("silent", "no way")

    @property
    def usable_bmc(self) -> bool:
        """Whether the BMC can switch the power."""
        return self.power not in (None, "unknown") and not self.foreign_bmc

    @property
    def read(self) -> HostAudit | None:
        """The audit, if the host could be probed."""
        return self.audit if self.audit is not None and self.audit.status != "unread" else None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Recognised known failures."""
        return self.audit.findings if self.audit else ()

    @property
    def reboots(self) -> bool:
        """Whether the planned changes include a reboot."""
        after = (isinstance(change, Deferred) and change.until == "reboot" for change in self.changes)
        return any(isinstance(change, Reboot) for change in self.changes) or any(after)

    @property
    def changes(self) -> tuple[Planned, ...]:
        """Differences from the stack."""
        return self.plan.changes if self.plan else ()

    @property
    def differs(self) -> bool:
        """Whether a provisioning run would change anything, or the audit found a deviation."""
        return bool(self.changes) or bool(self.audit and self.audit.deviations)

    @property
    def refusals(self) -> tuple[str, ...]:
        """Refusals of the stack on this host, except for lack of disk space, which can be freed."""
        return tuple(refusal.sentence for refusal in self._refused if refusal.rule != room.RULE)

    @property
    def no_room(self) -> tuple[str, ...]:
        """Refusals for lack of disk space."""
        return tuple(refusal.sentence for refusal in self._refused if refusal.rule == room.RULE)

    @property
    def _refused(self) -> tuple[Refusal, ...]:
        return tuple(change for change in self.changes if isinstance(change, Refusal) and not change.alone)


def reach_of(error: HostwrightError | None) -> Reach:
    """Reach of a host, by the error of connecting and probing; ``None`` for no error.

    An error of this machine's name service or network, or of a jump host, does not indicate the host's state: its power
    must not be cut for that.
    """
    match error:
        case None:
            return "answers"
        case HostKeyMismatch():
            return "no way" if _on_the_way(error) else "key changed"
        case BecomeError():
            return "no root"
        case Unreachable():
            if _on_the_way(error):
                return "no way"
            return "silent" if error.passing else "refused login"
    return "unreadable"


def _on_the_way(error: HostError) -> bool:
    """Whether the error occurred before the host: at a jump host, in the name service, or in this machine's network."""
    if error.sentence.startswith("its jump host"):
        return True
    return any(
        isinstance(cause, socket.gaierror) or (isinstance(cause, OSError) and cause.errno in _OUR_NETWORK)
        for cause in _causes(error)
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__
