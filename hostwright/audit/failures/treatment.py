"""What a rebuild does about a known failure, as data that stands with the failure's rule.

A grave failure that ``invoke provision`` mends is mended by repair, and needs no treatment unless another way is
sounder. One that is not grave wants attention and moves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

#: what can be done about failing hardware: cut the power (or reboot, where that does), or give it to people
HardwareWay = Literal["power cycle", "hand over"]


#: by this name a rebuild keeps that fewer cards are there than the inventory says: a failure that no rule tells
FEWER_CARDS = "gpus-fewer"


@dataclass(frozen=True, slots=True)
class Hardware:
    """The failure is, or may be, the hardware's. ``source`` is who says so. ``gently``: a reboot does as well as
    cutting the power.

    ``tries`` is after how many power cycles the same failure is the hardware's for good; 0: at once. A ``layer`` that
    is not as the stack wants it shows the same, so the failure tells of the hardware only where that layer is.
    ``cases`` tells apart several failures that one finding holds, by its evidence. ``explains`` are names of failures
    that are this one seen from another side, as long as it can be cured.
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
    """One of several failures in one finding: its name in records, a sentence without its full stop, its treatment."""

    name: str
    text: str
    treatment: Hardware


@dataclass(frozen=True, slots=True)
class Tangled:
    """Parts of several kinds are in each other's way: to take all layers away and bring them again is sounder than
    mending, whatever differs. ``reason`` says so in a few words.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Stuck:
    """A provisioning run mends nothing of it by itself: it may pass when that mends something else, else all layers
    are taken away and brought again. ``reason`` says so in a few words.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Held:
    """A reboot frees what is held. ``reason`` says so in a few words."""

    reason: str


@dataclass(frozen=True, slots=True)
class NoRoom:
    """Our own former files may be what takes the room: they are removed first. ``nearly``: only where something is to
    be installed.
    """

    nearly: bool = False


@dataclass(frozen=True, slots=True)
class ForPeople:
    """Neither a rebuild nor a new card mends it: people decide."""


Treatment: TypeAlias = Hardware | Tangled | Stuck | Held | NoRoom | ForPeople
