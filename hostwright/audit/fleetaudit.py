"""Data classes for the result of an audit, for one host and for the fleet.

Every string from a host is untrusted: print it through ``common.text.printable``, or with the escaping of the output
format.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from hostwright.audit.hardware.gpu import Gpu, GpuEvent
from hostwright.common.errors import Finding
from hostwright.plan.roles.layers import one_order
from hostwright.stack.ages import Aged

#: version of the audit's JSON document. Increment the version if a field is removed or changes meaning.
SCHEMA = 1

GPU_LAYER = "gpu"
#: layers that are compared between hosts with different stacks
MACHINE_LAYERS = frozenset({"base", GPU_LAYER})
#: names of the check that reports unreadable GPUs: on a host with a GPU driver, and on a host without one
CARDS, DRIVER_OF_CARDS = "cards", "driver of cards"

#: status of a host in an audit. Since the last good run, the host changed (``drift``), the desired state changed
#: (``intent``), or one of the two changed (``differs``).
Status = Literal["unread", "failing", "drift", "differs", "intent", "new", "desired"]
#: status of a layer of a host. For ``warning``, the layer is as desired, but something needs attention.
LayerStatus = Literal["unread", "failing", "drift", "differs", "intent", "new", "warning", "desired"]
Why = Literal["drift", "differs", "intent", "new"]

#: statuses from worst to best
WORST_FIRST: tuple[LayerStatus, ...] = ("failing", "drift", "differs", "intent", "new", "unread", "warning", "desired")


@dataclass(frozen=True, slots=True)
class Reading:
    """One value that was read on a host. ``have`` is empty if the host does not have the value.

    ``want`` is the value in the stack. If ``want`` is ``None``, the value is compared between hosts with equal
    ``among``, such as kernels between hosts with the same distribution. ``found`` marks installed software, even if
    Hostwright did not install it.
    """

    layer: str
    name: str
    have: str
    want: str | None = None
    among: str = ""
    found: bool = False

    @property
    def differs(self) -> bool:
        """Whether the host's value differs from the value in the stack."""
        return self.want is not None and self.have != self.want


@dataclass(frozen=True, slots=True)
class Deviation:
    """One state of a host that differs from the desired state, and why (``drift``, ``intent``, …)."""

    layer: str
    what: str
    have: str
    want: str
    why: Why


@dataclass(frozen=True, slots=True)
class NotChecked:
    """A check that could not be made, and the reason. Such a check does not count as a fault of the host."""

    layer: str
    check: str
    reason: str


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of a host (a role, the GPUs or the release record), and its status in the audit."""

    name: str
    status: LayerStatus


@dataclass(frozen=True, slots=True)
class ReleaseRecord:
    """The main fields of the release record that the last provisioning wrote on the host.

    ``at`` is UTC, ISO 8601.
    """

    stack: str
    at: str
    run: str
    operator: str


@dataclass(frozen=True, slots=True)
class HostAudit:
    """The audit of one host. ``at`` is the time when the host was read (UTC, ISO 8601).

    ``sentence`` is the error text if the host could not be read, else empty. ``notes`` report operators' locks and
    drains.
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
    xids: tuple[GpuEvent, ...] = ()  #: GPU events that the kernel logged in recent days
    record: ReleaseRecord | None = None
    groups: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    #: files and packages that changed after the release record was written
    changed: tuple[str, ...] = ()
    lead: str = ""  #: verb of the command to run next, for a host that could not be read
    aged: tuple[Aged, ...] = ()  #: installed software versions that lack a fix or no longer receive fixes


@dataclass(frozen=True, slots=True)
class ValueSpread:
    """The values of one reading on comparable hosts, if no stack defines the value.

    ``values`` are pairs of a value and its hosts, the most common value first. ``majority`` is the value of more than
    half of the hosts, or empty. ``outliers`` are the hosts with another value.
    """

    layer: str
    name: str
    among: str
    values: tuple[tuple[str, tuple[str, ...]], ...]
    majority: str
    outliers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FleetAudit:
    """One audit of many hosts. ``at`` is the time when the audit began (UTC, ISO 8601); ``took_s`` is the duration in
    seconds.

    ``offline`` marks an audit of stored facts, which contacted no host.
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
        """The names of the layers of all hosts, in the order of reports."""
        return one_order(dict.fromkeys(tuple(layer.name for layer in host.layers) for host in self.hosts))


def have_several_stacks(hosts: Iterable[HostAudit]) -> bool:
    """Return whether the ``hosts`` have different stacks, so that a report must name each host's stack."""
    return len({host.stack for host in hosts}) > 1


def worst(statuses: Iterable[LayerStatus]) -> Status:
    """Return the worst of the ``statuses`` of a host's layers, which is the status of the host."""
    present = set(statuses)
    for status in WORST_FIRST:
        if status in present and status != "warning":
            return status
    return "desired"
