"""What a rebuild does about a known failure, as data in the failure's rule.

A grave failure that ``invoke provision`` fixes is repaired, and needs no treatment unless another way is more reliable.
A rebuild does nothing about a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

#: what can be done about failing hardware: power-cycle it (or reboot, where that is enough), or leave it to people
HardwareWay = Literal["power cycle", "hand over"]


@dataclass(frozen=True, slots=True)
class Hardware:
    """The failure is, or may be, a hardware fault. ``source`` says where that is known from. ``gently``: a reboot does
    as well as a power cycle.

    After ``tries`` power cycles the same failure counts as a hardware defect; 0: at once. ``layer`` is a layer which,
    when it is not as desired, causes the same failure: the hardware is suspected only where that layer is as desired.
    ``cases`` splits one finding into several failures, by its evidence. ``explains`` names failures that are symptoms
    of this one, as long as it can be fixed.
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
    """One of several failures in one finding: its name in records, a sentence without a full stop, its treatment."""

    name: str
    text: str
    treatment: Hardware


@dataclass(frozen=True, slots=True)
class Tangled:
    """Conflicting parts are installed: removing all layers and provisioning again is more reliable than a repair,
    whatever differs. ``reason`` says why in a few words.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Stuck:
    """Provisioning does not fix it directly. It may pass when provisioning fixes something else; if not, all layers are
    removed and provisioned again. ``reason`` says why in a few words.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Held:
    """A reboot releases what is held. ``reason`` says what in a few words."""

    reason: str


@dataclass(frozen=True, slots=True)
class NoRoom:
    """Files that Hostwright itself left behind may fill the disk, and are removed first. ``nearly``: only where
    something is to be installed.
    """

    nearly: bool = False


@dataclass(frozen=True, slots=True)
class ForPeople:
    """Neither a rebuild nor new hardware fixes it: it needs manual work."""


Treatment: TypeAlias = Hardware | Tangled | Stuck | Held | NoRoom | ForPeople
