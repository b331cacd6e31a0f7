"""What the history tells, as values. Every text of a host in them is untrusted, as it is in an audit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from hostwright.audit.fleetaudit import Status
from hostwright.audit.history.items import CARD, DEVIATION, FINDING, READING, STATUS

NOTHING = "nothing"  #: how an empty value is written


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """Something that was otherwise when a host was looked at than it had been the time before. ``at`` is UTC.

    ``kind`` is status, stack, layer, reading, deviation, finding or card; ``name`` the reading's, the state's, the
    rule's, or the card's PCI address. ``before`` and ``after`` are its values, ``None`` where it was not there (or, for
    the first status of a host, not known). ``want`` is what the stack wanted of it, and ``note`` what else was seen: of
    a host that could not be read why, of a finding the host's own lines, of a deviation drift, intent or new.
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
        """The event in a line, without its time: ``driver loaded: 470.182.03 → 470.256.02``."""
        subject = " ".join(filter(None, (self.layer, self.name))) or self.kind
        match self.kind:
            case "deviation" if self.after is None:
                return f"{subject}: as desired again"
            case "deviation":
                return f"{subject}: {self.after or NOTHING}, not {self.want or NOTHING} ({self.note})"
            case "finding":
                return f"{subject}: {'no more seen' if self.after is None else f'seen ({self.after})'}"
            case "card":
                return f"card {self.name}: {self._change('gone', 'none')}"
        because = f" ({self.note})" if self.note else ""
        return f"{subject}: {self._change(NOTHING, '')}{because}"

    def _change(self, nothing: str, unknown: str) -> str:
        before = unknown if self.before is None else self.before or NOTHING
        after = nothing if self.after is None else self.after or NOTHING
        return f"{before} → {after}" if before else after


@dataclass(frozen=True, slots=True)
class HostHistory:
    """What audits saw of one host, the oldest first. ``first`` and ``last`` are when it was looked at (UTC).

    A host that no audit has looked at has neither these nor a status.
    """

    host: str
    status: Status | None = None
    first: datetime | None = None
    last: datetime | None = None
    events: tuple[HistoryEvent, ...] = ()


@dataclass(frozen=True, slots=True)
class FleetChange:
    """The same change on some hosts. Values as in ``HistoryEvent``."""

    kind: str
    layer: str
    name: str
    before: str | None
    after: str | None
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FleetDiff:
    """What is otherwise at the audit ``until`` than it was at the audit ``since`` (when these began, UTC).

    Both are ``None`` where there is no audit. Of a host that could not be read, or was not looked at, what was last
    known counts. ``changes`` are all of them, equal ones of different hosts as one.
    """

    since: datetime | None = None
    until: datetime | None = None
    changes: tuple[FleetChange, ...] = ()
    came: tuple[str, ...] = ()  #: hosts that were looked at for the first time
    unseen: tuple[str, ...] = ()  #: hosts that were looked at in the month before, and not since
    unread: tuple[str, ...] = ()  #: hosts that could not be read the last time

    def of(self, *kinds: str) -> tuple[FleetChange, ...]:
        """The changes of these kinds."""
        return tuple(change for change in self.changes if change.kind in kinds)

    def on(self, hosts: set[str]) -> FleetDiff:
        """The diff of these hosts alone."""
        changes = [
            replace(change, hosts=tuple(host for host in change.hosts if host in hosts)) for change in self.changes
        ]
        named = [tuple(host for host in group if host in hosts) for group in (self.came, self.unseen, self.unread)]
        return FleetDiff(self.since, self.until, tuple(change for change in changes if change.hosts), *named)

    @property
    def left(self) -> tuple[str, ...]:
        """Hosts that were as desired, and are not any more; one that could not be read is not among them."""
        changes = [change for change in self.of(STATUS) if change.before == "desired" and change.after != "unread"]
        return _hosts(changes)

    @property
    def reached(self) -> tuple[str, ...]:
        """Hosts that are as desired, and were not."""
        return _hosts([change for change in self.of(STATUS) if change.after == "desired" and change.before != "unread"])

    @property
    def values(self) -> tuple[FleetChange, ...]:
        """Readings and cards that have changed."""
        return self.of(READING, CARD)

    @property
    def findings(self) -> tuple[FleetChange, ...]:
        """Failures that are recognised now and were not, or the other way round."""
        return self.of(FINDING)

    @property
    def deviations(self) -> tuple[FleetChange, ...]:
        """States that are not as desired now and were, or the other way round."""
        return self.of(DEVIATION)


def _hosts(changes: list[FleetChange]) -> tuple[str, ...]:
    return tuple(sorted({host for change in changes for host in change.hosts}))
