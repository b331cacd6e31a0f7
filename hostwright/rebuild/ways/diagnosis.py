"""Diagnosis of a host before its rebuild, as values that rules can read, and conversion of errors to such values."""

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

#: Result of a connection to a host. silent: no answer · refused login: also for an unknown host key or name · no root:
#: sudo failed · unreadable: invalid answer · no way: an error of this machine, its name service or a jump host
Reach = Literal["answers", "key changed", "silent", "refused login", "no root", "unreadable", "no way"]
#: power state of a host, as its BMC reports it; ``unknown`` without a report
Power = Literal["on", "off", "turning on", "turning off", "unknown"]
#: method to reinstall a host: through the BMC, by the site's command, or none
Reinstall = Literal["redfish", "command", ""]

#: period in which equal failures of a host are counted (our choice)
LATELY = timedelta(days=30)

_OUR_NETWORK = (errno.ENETUNREACH, errno.ENETDOWN)  #: error numbers for a missing route or network of this machine


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """State of a host, as input for the choice of the method to rebuild it.

    ``sentence`` is the error of the host's probes, ``power_sentence`` the error of its BMC. ``power`` is ``None``
    without a BMC. ``audit`` and ``plan`` are ``None`` if the host could not be probed. ``history`` has the host's
    rebuilds within ``LATELY``, ``tried`` the methods of the current rebuild. ``treatments`` maps the names of known
    failures to treatments. ``running`` are the users at work on the host. ``plan`` would disturb the users
    ``disturbed``.
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
        """Whether the BMC reports that the host is off although the host answers.

        The BMC then belongs to another host.
        """
        return self.off and self.reach not in ("silent", "no way")

    @property
    def usable_bmc(self) -> bool:
        """Whether the BMC can switch the power of this host."""
        return self.power not in (None, "unknown") and not self.foreign_bmc

    @property
    def read(self) -> HostAudit | None:
        """The host's audit; ``None`` if the host could not be probed."""
        return self.audit if self.audit is not None and self.audit.status != "unread" else None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Known failures that the audit recognised on the host."""
        return self.audit.findings if self.audit else ()

    @property
    def reboots(self) -> bool:
        """Whether the provisioning plan includes a reboot."""
        after = (isinstance(change, Deferred) and change.until == "reboot" for change in self.changes)
        return any(isinstance(change, Reboot) for change in self.changes) or any(after)

    @property
    def changes(self) -> tuple[Planned, ...]:
        """Changes in the provisioning plan."""
        return self.plan.changes if self.plan else ()

    @property
    def differs(self) -> bool:
        """Whether a provisioning run would change anything, or the audit found a deviation."""
        return bool(self.changes) or bool(self.audit and self.audit.deviations)

    @property
    def refusals(self) -> tuple[str, ...]:
        """Reasons why the host cannot get its stack, except lack of disk space, because space can be freed."""
        return tuple(refusal.sentence for refusal in self._refused if refusal.rule != room.RULE)

    @property
    def no_room(self) -> tuple[str, ...]:
        """Reasons why the host cannot get its stack because of lack of disk space."""
        return tuple(refusal.sentence for refusal in self._refused if refusal.rule == room.RULE)

    @property
    def _refused(self) -> tuple[Refusal, ...]:
        return tuple(change for change in self.changes if isinstance(change, Refusal) and not change.alone)


def reach_of(error: HostwrightError | None) -> Reach:
    """Convert ``error``, raised while connecting to a host or probing it, to the ``Reach`` of the host.

    ``None`` means success. An error of this machine or of a jump host is ``no way``: the host must then not be
    power-cycled.
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
    """Whether ``error`` is about a jump host, the name service or this machine's network, and not about the host."""
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
