"""The hardware that a host should have, according to its inventory and to earlier audits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields

from hostwright.audit.hardware.gpu import Gpu
from hostwright.common.text import differences
from hostwright.common.untrusted import whole

REMEMBERED_DAYS = 30  #: number of days for which missing hardware is reported (our choice)
#: fraction of the earlier memory size below which memory counts as lost. The loss of one of 32 modules is 3 %.
_LESS_MEMORY = 0.98


@dataclass(frozen=True, slots=True)
class KnownCard:
    """The identity of a GPU, and the values that a fault may reduce, such as links. Unknown values are empty."""

    bus: str  #: PCI address in lowercase, such as ``0000:3b:00.0``
    model: str = ""
    serial: str = ""
    uuid: str = ""
    vbios: str = ""
    memory: str = ""  #: memory size in MiB
    ecc: str = ""  #: ECC mode of the GPU: ``on`` or ``off``. Some GPUs have less memory with ECC.
    nvlinks: str = ""  #: number of active NVLink links
    pcie: str = ""  #: number of lanes that both the GPU and its slot support
    generation: str = ""  #: PCIe generation that both the GPU and its slot support

    def __str__(self) -> str:
        words = {
            "serial": self.serial, "": self.uuid, "VBIOS": self.vbios, "MiB": self.memory, "ECC": self.ecc,
            "NVLinks": self.nvlinks, "PCIe": " ".join(filter(None, (self.generation, self.pcie and f"x{self.pcie}"))),
        }  # fmt: skip
        first = {"MiB", "NVLinks"}
        known = (f"{value} {name}" if name in first else f"{name} {value}" for name, value in words.items() if value)
        return ", ".join([self.model or "unknown", *(text.strip() for text in known)])

    @property
    def name(self) -> str:
        """PCI address, model, serial number and UUID of the GPU, for messages."""
        words = (self.model or "unknown", self.serial and f"serial {self.serial}", self.uuid)
        return f"{self.bus}: {', '.join(filter(None, words))}"

    @property
    def identity(self) -> str:
        """The UUID or serial number, since the PCI address depends on the slot. If both are unknown, the PCI
        address.
        """
        return self.uuid or self.serial or self.bus

    def is_other_than(self, card: KnownCard) -> bool:
        """Return whether ``card`` is a different GPU: the serial numbers or the UUIDs are known and differ."""
        pairs = ((self.serial, card.serial), (self.uuid, card.uuid))
        return any(one and two and one != two for one, two in pairs)

    def differs(self, other: KnownCard) -> bool:
        """Return whether any value that is known for both this GPU and ``other`` differs."""
        pairs = ((getattr(self, part.name), getattr(other, part.name)) for part in fields(self))
        return any(one and two and one != two for one, two in pairs)


@dataclass(frozen=True, slots=True)
class KnownHardware:
    """The hardware of a host according to its inventory, and to the audits of the last 30 days."""

    gpus: int | None = None  #: number of GPUs according to the inventory (``hostwright_gpus``)
    #: GPUs that earlier audits found, latest state first
    cards: tuple[KnownCard, ...] = ()
    most_gpus: int = 0  #: largest number of GPUs in one audit
    memory_gib: int = 0  #: largest memory size in GiB that an audit found

    def missing(self, present: Iterable[Gpu]) -> tuple[KnownCard, ...]:
        """Return the GPUs of earlier audits that are not in ``present``, and whose slots contain no other GPU now."""
        here = [known_card(gpu) for gpu in present]
        known, buses = {card.identity for card in here}, {card.bus for card in here}
        gone: dict[str, KnownCard] = {}
        for card in self.cards:
            if card.identity not in known and card.bus not in buses:
                gone.setdefault(card.bus, card)
        return tuple(gone[bus] for bus in sorted(gone))

    def replaced(self, present: Iterable[Gpu]) -> Iterator[str]:
        """Yield texts ``BUS: serial OLD → NEW`` for the slots in which ``present`` has another GPU than
        earlier audits.
        """
        here = [known_card(gpu) for gpu in present]
        known = {card.identity for card in here}
        for now in here:
            others = (card for card in self.cards if card.bus == now.bus and card.is_other_than(now))
            before = next((card for card in others if card.identity not in known), None)
            if before is not None:
                yield f"{now.bus}: {differences(str(before), str(now))}"

    def less(self, gpu: Gpu) -> Iterator[str]:
        """Yield texts for values of ``gpu`` that are lower than in earlier audits: ``active NVLinks: 11, 12
        before``.
        """
        now = known_card(gpu)
        before = [card for card in self.cards if card.identity == now.identity]
        for what, value in _VALUES:
            if (number := whole(value(now))) is not None:
                alike = (card for card in before if what != _MEMORY or card.ecc == now.ecc)
                most = max((whole(value(card)) or 0 for card in alike), default=0)
                if number < most:
                    yield f"{what}: {value(now)}, {most} before"

    def less_memory(self, memory_bytes: int) -> str:
        """Return a text with ``memory_bytes`` and the earlier size if earlier audits found more memory, else empty."""
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
    """Return the identity of ``gpu``, and the values that later audits compare.

    In MIG mode, NVLinks are not counted, since the driver may disable them.
    """
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
