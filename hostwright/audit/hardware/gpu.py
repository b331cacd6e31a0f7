"""One GPU as its driver describes it. ``None`` where the card or its driver does not tell (``N/A``)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EccCounts:
    """ECC errors: since the driver was loaded (volatile) or over the card's lifetime (aggregate)."""

    corrected: int | None = None
    uncorrected: int | None = None
    sram_corrected: int | None = None
    sram_uncorrected: int | None = None
    dram_corrected: int | None = None
    dram_uncorrected: int | None = None


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that uses the GPU."""

    pid: int
    name: str
    kind: str  #: C compute, G graphics
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class GpuLink:
    """One link of a card to another card, or to a switch of cards."""

    number: int
    active: bool


@dataclass(frozen=True, slots=True)
class Gpu:
    """One card. Widths are in PCIe lanes, temperatures in degrees Celsius, power in watts."""

    index: int
    bus: str  #: PCI address as ``0000:3b:00.0``, lower case
    uuid: str = ""
    model: str = ""
    serial: str = ""
    vbios: str = ""
    memory_bytes: int | None = None
    memory_used_bytes: int | None = None
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    pcie_replays: int | None = None
    ecc: bool | None = None  #: switched on
    ecc_volatile: EccCounts = EccCounts()
    ecc_aggregate: EccCounts = EccCounts()
    retired_single_bit: int | None = None  #: pages retired after many corrected errors
    retired_double_bit: int | None = None  #: pages retired after an uncorrected error
    retirement_pending: bool | None = None
    remapped_corrected: int | None = None
    remapped_uncorrected: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    persistence: bool | None = None
    mig: bool | None = None
    mig_instances: int | None = None
    slowdowns: tuple[str, ...] = ()  #: active reasons for lower clocks, as the driver's tool names them
    temperature: int | None = None
    temperature_slowdown: int | None = None  #: from this temperature on the hardware slows the card down
    temperature_maximum: int | None = None  #: at this temperature it shuts the card down
    power: float | None = None
    power_limit: float | None = None
    performance: str = ""  #: P0 to P12
    links: tuple[GpuLink, ...] = ()
    processes: tuple[GpuProcess, ...] = ()
    fault: str = ""  #: what the driver says instead of values: "GPU is lost", "GPU requires reset", "Unknown Error"
    recovery: str = ""  #: what the driver asks for: "Reset", "Reboot", "Drain P2P", "Drain and Reset", or nothing
    ecc_pending: bool | None = None  #: whether it will be on after the next reset
    mig_pending: bool | None = None  #: whether it will be on after the next reset
    sram_threshold_exceeded: bool | None = None  #: more uncorrectable SRAM errors than its vendor tolerates
    remap_banks_spent: int | None = None  #: memory banks with no spare row left
    temperature_margin: int | None = None  #: degrees below the operating limit (T.Limit)
    fabric: bool | None = None  #: whether it has joined the switches between cards; ``None``: it has none, or no word
    fabric_state: str = ""  #: that, as the driver's tool says it: "Completed, Success", "In Progress"
    clique: str = ""  #: cards of one clique reach each other by the fabric


@dataclass(frozen=True, slots=True)
class GpuEvent:
    """An event that a card reported in the kernel's log. ``at`` is UTC, ISO 8601, or empty where the log has no time.

    ``meaning`` and ``asks`` are sentences without a full stop: what the number means, and what its vendor says to do.
    """

    number: int
    bus: str  #: PCI address as ``0000:3b:00``
    at: str
    text: str  #: the line as logged: untrusted
    count: int = 1  #: how often this card reported this number in the period that was read; ``at`` is the last time
    meaning: str = ""
    asks: str = ""
