"""What an audit says, as values: of one host, and of the fleet. Reports, history and exit status read nothing else.

Every string that came from a host is untrusted text: whoever prints it passes it through ``common.text.printable`` or
the escaping of their own format.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from hostwright.audit.hardware.gpu import Gpu, GpuEvent
from hostwright.plan.roles.layers import one_order

#: of everything below as JSON; a field that goes or changes its meaning raises it, a new field or status does not
SCHEMA = 1

GPU_LAYER = "gpu"  #: the layer below all roles: cards, their links and memory

#: unread: could not be looked at · failing: a grave failure is recognised though nothing differs from the stack ·
#: drift: as desired at the last good run, now not · intent: what is desired has changed since the last good run ·
#: differs: one of these two, and the record of an earlier Hostwright does not tell which ·
#: new: never brought to a stack · desired: as desired
Status = Literal["unread", "failing", "drift", "differs", "intent", "new", "desired"]
#: and of one layer also: warning: as desired, and something wants attention
LayerStatus = Literal["unread", "failing", "drift", "differs", "intent", "new", "warning", "desired"]
Why = Literal["drift", "differs", "intent", "new"]

#: of the statuses of a host's layers the first in this order is the host's
WORST_FIRST: tuple[LayerStatus, ...] = ("failing", "drift", "differs", "intent", "new", "unread", "warning", "desired")


@dataclass(frozen=True, slots=True)
class Reading:
    """One value read on a host: ``have`` is empty where there is nothing.

    ``want`` is what the stack pins, ``None`` where no stack does; then hosts are compared with each other, those with
    equal ``among`` (the GPU's model for its VBIOS, the distribution for the kernel).
    """

    layer: str
    name: str
    have: str
    want: str | None = None
    among: str = ""

    @property
    def differs(self) -> bool:
        """Whether the stack wants another value."""
        return self.want is not None and self.have != self.want


@dataclass(frozen=True, slots=True)
class Deviation:
    """One state of a host that is not as desired, and why that is so."""

    layer: str
    what: str
    have: str
    want: str
    why: Why


@dataclass(frozen=True, slots=True)
class Finding:
    """A known failure that was recognised: ``evidence`` are the host's own lines that show it.

    ``grave``: work fails or will fail; otherwise it wants attention. ``provision`` tells whether ``invoke provision``
    mends it. ``link`` leads into the documentation.
    """

    rule: str
    layer: str
    grave: bool
    evidence: tuple[str, ...]
    cause: str
    cure: str
    provision: bool
    link: str


@dataclass(frozen=True, slots=True)
class NotChecked:
    """A check that could not run, and why. It says nothing about the host."""

    layer: str
    check: str
    reason: str


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of one host in one word."""

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
    """One host as an audit saw it. ``at`` is when the host was looked at (UTC, ISO 8601).

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
    xids: tuple[GpuEvent, ...] = ()  #: what cards reported in the last days
    record: ReleaseRecord | None = None
    groups: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ValueSpread:
    """How one value that no stack pins is spread over the hosts that can be compared.

    ``values`` are value and hosts, the most common first. ``majority`` is that value when more than half of the hosts
    have it, else empty; ``outliers`` are the hosts without it (nobody, where there is no majority).
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

    ``offline`` marks one that evaluated stored facts, without asking any host.
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
        """The names of all layers of all hosts, in order."""
        return one_order([layer.name for layer in host.layers] for host in self.hosts)


def worst(statuses: Iterable[LayerStatus]) -> Status:
    """The status of a host whose layers have these."""
    present = set(statuses)
    for status in WORST_FIRST:
        if status in present and status != "warning":
            return status
    return "desired"
