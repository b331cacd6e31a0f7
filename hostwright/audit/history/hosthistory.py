"""Data classes for the results of queries of the audit history. Text from a host is untrusted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from hostwright.audit.fleetaudit import Status
from hostwright.audit.history.items import CARD, DEVIATION, FINDING, READING, STATUS
from hostwright.common.text import differences

NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """One change of a host between two of its audits. ``at`` is UTC.

    ``kind`` is status, stack, layer, reading, deviation, finding or card. ``name`` is the name of the reading, state or
    rule, or the GPU's PCI address. ``before`` and ``after`` are the values before and after the change; ``None`` if the
    value did not exist or is unknown. ``want`` is the value in the stack. ``note`` is the error text for an unreadable
    host, the evidence of a finding, or the reason of a deviation (drift, intent or new).
    """

    at: datetime
    kind: str
    layer: str
    name: str
    before: str | None
    after: str | None
    want: str | None = None
    note: str = ""

    @property
    def sentence(self) -> str:
        """The event on one line, without its time: ``driver loaded: 470.182.03 → 470.256.02``."""
        subject = " ".join(filter(None, (self.layer, self.name))) or self.kind
        match self.kind:
            case "deviation" if self.after is None:
                return f"{subject}: as desired again"
            case "deviation":
                return f"{subject}: {self.after or NOTHING}, not {self.want or NOTHING} ({self.note})"
            case "finding":
                return f"{subject}: {'no longer found' if self.after is None else f'found ({self.after})'}"
            case "card" if self.before and self.after:
                return f"card {self.name}: {differences(self.before, self.after)}"
            case "card":
                return f"card {self.name}: {self._change('gone', 'none')}"
        because = f" ({self.note})" if self.note else ""
        return f"{subject}: {self._change(NOTHING, '')}{because}"

    @property
    def in_full(self) -> bool:
        """Whether ``sentence`` is printed without a length limit, because ``sentence`` ends with a serial number."""
        return self.kind == CARD

    def _change(self, nothing: str, unknown: str) -> str:
        before = unknown if self.before is None else self.before or NOTHING
        after = nothing if self.after is None else self.after or NOTHING
        return f"{before} → {after}" if before else after


@dataclass(frozen=True, slots=True)
class HostHistory:
    """The events of one host, the oldest first. ``first`` and ``last`` are the times of the first and last audit (UTC).

    If the host was never audited, ``first``, ``last`` and ``status`` are ``None``.
    """

    host: str
    status: Status | None = None
    first: datetime | None = None
    last: datetime | None = None
    events: tuple[HistoryEvent, ...] = ()


@dataclass(frozen=True, slots=True)
class FleetChange:
    """The same change on one or more hosts. For the meaning of the fields, see ``HistoryEvent``."""

    kind: str
    layer: str
    name: str
    before: str | None
    after: str | None
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FleetDiff:
    """The changes of a fleet between two audits, which began at ``since`` and ``until`` (UTC).

    Both times are ``None`` if there is no audit. For a host that an audit did not read, the last known facts before
    that audit are compared.
    """

    since: datetime | None = None
    until: datetime | None = None
    changes: tuple[FleetChange, ...] = ()
    came: tuple[str, ...] = ()  #: hosts audited for the first time
    unseen: tuple[str, ...] = ()  #: hosts audited in the month before ``since``, but not later
    unread: tuple[str, ...] = ()  #: hosts that could not be read in the last audit until ``until``

    def of(self, *kinds: str) -> tuple[FleetChange, ...]:
        """Return the changes whose kind is one of ``kinds``, such as ``status``."""
        return tuple(change for change in self.changes if change.kind in kinds)

    def on(self, hosts: set[str]) -> FleetDiff:
        """Return a copy with only the changes of ``hosts``."""
        changes = [
            replace(change, hosts=tuple(host for host in change.hosts if host in hosts)) for change in self.changes
        ]
        named = [tuple(host for host in group if host in hosts) for group in (self.came, self.unseen, self.unread)]
        return FleetDiff(self.since, self.until, tuple(change for change in changes if change.hosts), *named)

    @property
    def left(self) -> tuple[str, ...]:
        """The hosts that were as desired at ``since``, and are not at ``until``.

        Hosts that could not be read at ``until`` are omitted.
        """
        changes = [change for change in self.of(STATUS) if change.before == "desired" and change.after != "unread"]
        return _hosts(changes)

    @property
    def reached(self) -> tuple[str, ...]:
        """The hosts that were not as desired at ``since``, and are at ``until``.

        Hosts that could not be read at ``since`` are omitted.
        """
        return _hosts([change for change in self.of(STATUS) if change.after == "desired" and change.before != "unread"])

    @property
    def values(self) -> tuple[FleetChange, ...]:
        """The changes of readings (values that were read on hosts) and of GPUs."""
        return self.of(READING, CARD)

    @property
    def findings(self) -> tuple[FleetChange, ...]:
        """The known failures that appeared or disappeared."""
        return self.of(FINDING)

    @property
    def deviations(self) -> tuple[FleetChange, ...]:
        """The changes of states that are no longer as desired, or are as desired again."""
        return self.of(DEVIATION)


def _hosts(changes: list[FleetChange]) -> tuple[str, ...]:
    return tuple(sorted({host for change in changes for host in change.hosts}))
