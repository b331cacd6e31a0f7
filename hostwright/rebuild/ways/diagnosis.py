"""What is known of a host that is to be rebuilt, before anything is done to it. Values, and how errors become them."""

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

#: answers: logged in and looked at · key changed: another host key than the one that is known · silent: nothing
#: answers at its address · refused login: it answers and lets us not in, or its key or name is not known · no root: no
#: sudo · unreadable: it answers with what is no answer · no way: this machine, its name service or a jump host is in
#: the way, which says nothing of the host
Reach = Literal["answers", "key changed", "silent", "refused login", "no root", "unreadable", "no way"]
#: what the BMC says; unknown where it could not be asked, or does not know
Power = Literal["on", "off", "turning on", "turning off", "unknown"]
#: how a host can get a new operating system: over its BMC, by the site's own command, or not at all
Reinstall = Literal["redfish", "command", ""]

#: How far back the same failure counts as the same again. Our choice: a card that falls off the bus three times in a
#: month is broken, one that does so every other year is not.
LATELY = timedelta(days=30)

_OUR_NETWORK = (errno.ENETUNREACH, errno.ENETDOWN)  #: this machine has no route or no network


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found. ``sentence`` says why a host could not be looked at, ``power_sentence`` why its BMC could not.

    ``power`` is ``None`` where the inventory names no BMC. ``audit`` and ``plan`` are ``None`` where the host could not
    be looked at. ``history`` are the rebuilds of this host within ``LATELY``, in any order, and ``tried`` the ways that
    this rebuild has taken already. ``treatments`` say what is to be done about each known failure, by its name.
    ``running`` names everybody whose work runs there, and ``disturbed`` those of them whom ``plan`` disturbs.
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
        """Whether the inventory names a BMC."""
        return self.power is not None

    @property
    def off(self) -> bool:
        """Whether the BMC says that the host is switched off, or is being so."""
        return self.power in ("off", "turning off")

    @property
    def foreign_bmc(self) -> bool:
        """Whether something answers at the host's address while its BMC says off: then it is another host's, whose
        power must not be cut, and which must not be reinstalled.
        """
        return self.off and self.reach not in ("silent", "no way")

    @property
    def usable_bmc(self) -> bool:
        """Whether power can be switched by the BMC."""
        return self.power not in (None, "unknown") and not self.foreign_bmc

    @property
    def read(self) -> HostAudit | None:
        """The audit, where the host could be looked at."""
        return self.audit if self.audit is not None and self.audit.status != "unread" else None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The known failures that were recognised."""
        return self.audit.findings if self.audit else ()

    @property
    def reboots(self) -> bool:
        """Whether what differs takes a reboot."""
        after = (isinstance(change, Deferred) and change.until == "reboot" for change in self.changes)
        return any(isinstance(change, Reboot) for change in self.changes) or any(after)

    @property
    def changes(self) -> tuple[Planned, ...]:
        """What differs from the stack."""
        return self.plan.changes if self.plan else ()

    @property
    def differs(self) -> bool:
        """Whether a provisioning run has anything to do, or the audit found a state that is not as desired."""
        return bool(self.changes) or bool(self.audit and self.audit.deviations)

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why the stack must not be brought there, but for room on the disk, which can be made."""
        return tuple(refusal.sentence for refusal in self._refused if refusal.rule != room.RULE)

    @property
    def no_room(self) -> tuple[str, ...]:
        """What is missing of room on the disk."""
        return tuple(refusal.sentence for refusal in self._refused if refusal.rule == room.RULE)

    @property
    def _refused(self) -> tuple[Refusal, ...]:
        return tuple(change for change in self.changes if isinstance(change, Refusal) and not change.alone)


def reach_of(error: HostwrightError | None) -> Reach:
    """What the error of connecting to a host and looking at it says of the host; ``None``: there was none.

    A name service or network of ours that fails, and a jump host that does, say nothing of the host itself: its power
    must not be cut for them.
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
    """Whether it failed before the host: at a jump host, in the name service, for want of a network."""
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
