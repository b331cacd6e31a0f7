"""The treatment of each known failure in a rebuild of a host. The rule of the failure contains the treatment.

By default, a rebuild repairs a grave failure if ``hostwright provision`` fixes the failure. A treatment replaces this
default. A rebuild ignores warnings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

#: treatment of failing hardware by a rebuild
HardwareWay = Literal["power cycle", "hand over"]


@dataclass(frozen=True, slots=True)
class Hardware:
    """Treatment of a confirmed or possible hardware fault.

    ``source`` is the origin of this knowledge. ``gently`` means that a reboot is enough instead of a power cycle. If
    the failure remains after ``tries`` power cycles, the hardware counts as defective. ``layer`` is a layer that may
    cause the same failure; the hardware is suspected only if that layer is as desired. ``cases`` splits one finding
    into several failures by the evidence. ``explains`` names failures that are symptoms of this failure; they are
    ignored until ``tries`` is used up.
    """

    way: HardwareWay
    source: str
    gently: bool = False
    tries: int = 2
    layer: str = ""
    cases: Callable[[tuple[str, ...]], Iterable[Case]] | None = None
    explains: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One of several hardware failures that a finding may report: name in records, sentence, treatment."""

    name: str
    text: str
    treatment: Hardware


@dataclass(frozen=True, slots=True)
class Tangled:
    """Treatment if conflicting software is installed: all layers are removed and reinstalled instead of repaired.

    ``reason`` gives the reason in a few words.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Stuck:
    """Treatment of a failure that may disappear when provisioning fixes another failure.

    If the failure remains, all layers are removed and provisioned again. ``reason`` gives the reason in a few words.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Held:
    """Treatment if a resource is in use: a reboot, which releases the resource. ``reason`` names the resource."""

    reason: str


@dataclass(frozen=True, slots=True)
class NoRoom:
    """Treatment if a disk is full: files that Hostwright left behind are removed first.

    ``nearly`` means that the disk is not full yet. Then files are removed only before an installation.
    """

    nearly: bool = False


@dataclass(frozen=True, slots=True)
class ForPeople:
    """Treatment of a failure that needs manual work, since neither a rebuild nor new hardware fixes the failure."""


Treatment: TypeAlias = Hardware | Tangled | Stuck | Held | NoRoom | ForPeople
