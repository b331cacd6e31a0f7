"""How a rebuild treats a known failure, as data in the failure's rule.

A grave failure that ``hostwright provision`` fixes is repaired. It needs a treatment only if another way is more
reliable. A rebuild ignores warnings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

#: for failing hardware: a power cycle (or a reboot, if that is enough), or handing the host over to people
HardwareWay = Literal["power cycle", "hand over"]


@dataclass(frozen=True, slots=True)
class Hardware:
    """A confirmed or possible hardware fault.

    ``source`` is the origin of this knowledge. ``gently`` means that a reboot is enough. After ``tries`` power cycles,
    the same failure counts as a hardware defect; 0: immediately. ``layer`` is a layer that causes the same failure if
    it is not as desired; the hardware is suspected only if that layer is as desired. ``cases`` splits one finding into
    several failures by its evidence. ``explains`` names failures that are symptoms of this one, and are ignored until
    its ``tries`` are used up.
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
    """One of several failures in a finding: its name in records, a sentence without a full stop, and its treatment."""

    name: str
    text: str
    treatment: Hardware


@dataclass(frozen=True, slots=True)
class Tangled:
    """Conflicting parts are installed: removing and reinstalling all layers is more reliable than a repair.

    The differences from the stack do not matter. ``reason`` gives the reason in a few words.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Stuck:
    """Provisioning does not fix this failure directly, but the failure may disappear when provisioning fixes another.

    If it does not, all layers are removed and provisioned again. ``reason`` gives the reason in a few words.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Held:
    """A reboot releases a resource that is in use. ``reason`` names the resource in a few words."""

    reason: str


@dataclass(frozen=True, slots=True)
class NoRoom:
    """Files that Hostwright left behind may fill the disk, and are removed first.

    ``nearly`` limits this to hosts on which something is to be installed.
    """

    nearly: bool = False


@dataclass(frozen=True, slots=True)
class ForPeople:
    """The failure needs manual work: neither a rebuild nor new hardware fixes it."""


Treatment: TypeAlias = Hardware | Tangled | Stuck | Held | NoRoom | ForPeople
