"""The result of an audit as values, of one host and of the fleet. Reports, history and exit status use nothing else.

Every string that came from a host is untrusted text: whoever prints it passes it through ``common.text.printable`` or
the escaping of their own format.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from hostwright.audit.hardware.gpu import Gpu, GpuEvent
from hostwright.common.errors import Finding
from hostwright.plan.roles.layers import one_order
from hostwright.stack.ages import Aged

#: of everything below as JSON; removing a field or changing its meaning raises it, a new field or status does not
SCHEMA = 1

GPU_LAYER = "gpu"  #: the layer below all roles: cards, their links and memory
#: layers whose values no stack brings: they are compared whatever the stacks of the hosts are
MACHINE_LAYERS = frozenset({"base", GPU_LAYER})
#: what could not be checked where no card could be read: the cards, or their driver where that is not there
CARDS, DRIVER_OF_CARDS = "cards", "driver of cards"

#: unread: could not be read · failing: a known failure was recognised, though nothing differs from the stack ·
#: drift: as desired at the last good run, now not · intent: the desired state has changed since the last good run ·
#: differs: one of these two, but the record was written by an earlier Hostwright and does not tell which ·
#: new: never provisioned with a stack · desired: as desired
Status = Literal["unread", "failing", "drift", "differs", "intent", "new", "desired"]
#: and of one layer also: warning: as desired, but something needs attention
LayerStatus = Literal["unread", "failing", "drift", "differs", "intent", "new", "warning", "desired"]
Why = Literal["drift", "differs", "intent", "new"]

#: a host has the first status in this order that one of its layers has
WORST_FIRST: tuple[LayerStatus, ...] = ("failing", "drift", "differs", "intent", "new", "unread", "warning", "desired")


@dataclass(frozen=True, slots=True)
class Reading:
    """One value read on a host; ``have`` is empty where there is none.

    ``want`` is what the stack pins, or ``None`` where it pins nothing; then hosts with equal ``among`` are compared
    with each other (the GPU's model for its VBIOS, the distribution for the kernel). ``found`` marks what a host has of
    a layer, whoever installed it and whatever its stack is.
    """

    layer: str
    name: str
    have: str
    want: str | None = None
    among: str = ""
    found: bool = False

    @property
    def differs(self) -> bool:
        """Whether the stack wants another value."""
        return self.want is not None and self.have != self.want


@dataclass(frozen=True, slots=True)
class Deviation:
    """One state of a host that is not as desired, and why."""

    layer: str
    what: str
    have: str
    want: str
    why: Why


@dataclass(frozen=True, slots=True)
class NotChecked:
    """A check that could not be made, and why. It says nothing about the host."""

    layer: str
    check: str
    reason: str


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of one host, and its status."""

    name: str
    status: LayerStatus


@dataclass(frozen=True, slots=True)
class ReleaseRecord:
    """What the host's release record says: stack, when (UTC, ISO 8601), by which run and whom."""

    stack: str
    at: str
    run: str
    operator: str


@dataclass(frozen=True, slots=True)
class HostAudit:
    """The audit of one host. ``at`` is when the host was read (UTC, ISO 8601).

    ``sentence`` says why a host could not be read, and is empty otherwise. ``notes`` are locks and drains.
    """

    host: str
    stack: str
    at: str
    status: Status
    sentence: str = ""
    layers: tuple[Layer, ...] = ()
    readings: tuple[Reading, ...] = ()
    deviations: tuple[Deviation, ...] = ()
    findings: tuple[Finding, ...] = ()
    not_checked: tuple[NotChecked, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    xids: tuple[GpuEvent, ...] = ()  #: what cards reported in recent days
    record: ReleaseRecord | None = None
    groups: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()  #: files and packages that changed since its record was written (``changed_since``)
    lead: str = ""  #: of a host that could not be read: the verb that leads on (``HostwrightError.lead``)
    aged: tuple[Aged, ...] = ()  #: what is known against versions that are on it: they get no fixes, or lack one


@dataclass(frozen=True, slots=True)
class ValueSpread:
    """One value that no stack pins, over the hosts that can be compared.

    ``values`` are pairs of a value and its hosts, the most common first. ``majority`` is the first where more than half
    of the hosts have it, else empty; ``outliers`` are the hosts with another value (none, where there is no majority).
    """

    layer: str
    name: str
    among: str
    values: tuple[tuple[str, tuple[str, ...]], ...]
    majority: str
    outliers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FleetAudit:
    """One audit of many hosts. ``at`` is when it began (UTC, ISO 8601), ``took_s`` how long it took.

    ``offline`` marks one of stored facts, which contacted no host.
    """

    at: str
    inventory: str
    hosts: tuple[HostAudit, ...]
    spreads: tuple[ValueSpread, ...] = ()
    took_s: float = 0.0
    offline: bool = False
    schema: int = SCHEMA

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the layers of all hosts, in order."""
        return one_order(dict.fromkeys(tuple(layer.name for layer in host.layers) for host in self.hosts))


def have_several_stacks(hosts: Iterable[HostAudit]) -> bool:
    """Whether a report has to say which host has which stack."""
    return len({host.stack for host in hosts}) > 1


def worst(statuses: Iterable[LayerStatus]) -> Status:
    """The status of a host whose layers have these statuses."""
    present = set(statuses)
    for status in WORST_FIRST:
        if status in present and status != "warning":
            return status
    return "desired"
