"""What is known of a host's hardware before it is read: from its inventory, and from earlier audits of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields

from hostwright.audit.hardware.gpu import Gpu
from hostwright.common.text import differences
from hostwright.common.untrusted import whole

#: Our choice. What is missing for longer is how the host is now, and no longer a finding.
REMEMBERED_DAYS = 30
#: a kernel keeps another share of the memory for itself than the one before; one of 32 modules is 3 %
_LESS_MEMORY = 0.98


@dataclass(frozen=True, slots=True)
class KnownCard:
    """What identifies a card, and what of it may become less. A value that is not known is empty."""

    bus: str  #: PCI address as ``0000:3b:00.0``, lower case
    model: str = ""
    serial: str = ""
    uuid: str = ""
    vbios: str = ""
    memory: str = ""  #: in MiB
    ecc: str = ""  #: on or off: with ECC, some cards have less memory
    nvlinks: str = ""  #: how many are active
    pcie: str = ""  #: lanes that card and slot have
    generation: str = ""  #: of PCIe, that card and slot have

    def __str__(self) -> str:
        words = {
            "serial": self.serial, "": self.uuid, "VBIOS": self.vbios, "MiB": self.memory, "ECC": self.ecc,
            "NVLinks": self.nvlinks, "PCIe": " ".join(filter(None, (self.generation, self.pcie and f"x{self.pcie}"))),
        }  # fmt: skip
        first = {"MiB", "NVLinks"}  # the number stands before its unit
        known = (f"{value} {name}" if name in first else f"{name} {value}" for name, value in words.items() if value)
        return ", ".join([self.model or "unknown", *(text.strip() for text in known)])

    @property
    def name(self) -> str:
        """The words by which people find it."""
        words = (self.model or "unknown", self.serial and f"serial {self.serial}", self.uuid)
        return f"{self.bus}: {', '.join(filter(None, words))}"

    @property
    def identity(self) -> str:
        """What tells it from all others, also after it was moved to another slot."""
        return self.uuid or self.serial or self.bus

    def is_other_than(self, card: KnownCard) -> bool:
        """Whether they are two cards: a serial number or UUID that is known of both differs."""
        pairs = ((self.serial, card.serial), (self.uuid, card.uuid))
        return any(one and two and one != two for one, two in pairs)

    def differs(self, other: KnownCard) -> bool:
        """Whether a value differs that is known of both."""
        pairs = ((getattr(self, part.name), getattr(other, part.name)) for part in fields(self))
        return any(one and two and one != two for one, two in pairs)


@dataclass(frozen=True, slots=True)
class KnownHardware:
    """What the inventory says of a host's hardware, and what audits of the last 30 days found."""

    gpus: int | None = None  #: how many GPUs it has, as its inventory says (``hostwright_gpus``)
    cards: tuple[KnownCard, ...] = ()  #: that audits found; of each card each of its states, the latest first
    most_gpus: int = 0  #: the largest number of GPUs that an audit found
    memory_gib: int = 0  #: the most memory

    def missing(self, present: Iterable[Gpu]) -> tuple[KnownCard, ...]:
        """The cards that earlier audits knew and that are not among these: neither they nor others in their slots."""
        here = [known_card(gpu) for gpu in present]
        known, buses = {card.identity for card in here}, {card.bus for card in here}
        gone: dict[str, KnownCard] = {}
        for card in self.cards:
            if card.identity not in known and card.bus not in buses:
                gone.setdefault(card.bus, card)
        return tuple(gone[bus] for bus in sorted(gone))

    def replaced(self, present: Iterable[Gpu]) -> Iterator[str]:
        """The cards that have taken the slots of others, which are not here any more: ``BUS: serial OLD → NEW``."""
        here = [known_card(gpu) for gpu in present]
        known = {card.identity for card in here}
        for now in here:
            others = (card for card in self.cards if card.bus == now.bus and card.is_other_than(now))
            before = next((card for card in others if card.identity not in known), None)
            if before is not None:
                yield f"{now.bus}: {differences(str(before), str(now))}"

    def less(self, gpu: Gpu) -> Iterator[str]:
        """What of a card is less than earlier audits found: ``11 NVLinks, 12 before``."""
        now = known_card(gpu)
        before = [card for card in self.cards if card.identity == now.identity]
        for what, value in _VALUES:
            if (number := whole(value(now))) is not None:
                alike = (card for card in before if what != _MEMORY or card.ecc == now.ecc)
                most = max((whole(value(card)) or 0 for card in alike), default=0)
                if number < most:
                    yield f"{what}: {value(now)}, {most} before"

    def less_memory(self, memory_bytes: int) -> str:
        """The same of the host's memory; empty where it is not less."""
        gib = round(memory_bytes / 2**30)
        return f"{gib} GiB, {self.memory_gib} GiB before" if gib < self.memory_gib * _LESS_MEMORY else ""


_MEMORY = "MiB of memory"
_VALUES: tuple[tuple[str, Callable[[KnownCard], str]], ...] = (
    (_MEMORY, lambda card: card.memory),
    ("active NVLinks", lambda card: card.nvlinks),
    ("PCIe lanes", lambda card: card.pcie),
    ("PCIe generation", lambda card: card.generation),
)


NOTHING_KNOWN = KnownHardware()


def known_card(gpu: Gpu) -> KnownCard:
    """A card as later audits remember it. In MIG mode a card's NVLinks may be off."""
    links = sum(link.active for link in gpu.links)
    return KnownCard(
        gpu.bus, gpu.model, gpu.serial, gpu.uuid, gpu.vbios,
        memory=_number(gpu.memory_bytes and gpu.memory_bytes >> 20),
        ecc="" if gpu.ecc is None else "on" if gpu.ecc else "off",
        nvlinks=str(links) if gpu.links and not gpu.mig else "",
        pcie=_number(gpu.pcie_width_max),
        generation=_number(gpu.pcie_generation_max),
    )  # fmt: skip


def _number(value: int | None) -> str:
    return "" if value is None else str(value)
