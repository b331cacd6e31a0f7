"""One GPU as its driver reports it. ``None`` means that the card or driver does not report the value (``N/A``)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EccCounts:
    """ECC error counts: since the driver was loaded (volatile), or over the card's lifetime (aggregate)."""

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
    """One link from a card to another card or to a switch."""

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
    ecc: bool | None = None  #: whether ECC is enabled
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
    slowdowns: tuple[str, ...] = ()  #: active reasons for reduced clocks, in the words of the driver's tool
    temperature: int | None = None
    temperature_slowdown: int | None = None  #: the hardware slows the card down from this temperature on
    temperature_maximum: int | None = None  #: the hardware shuts the card down at this temperature
    power: float | None = None
    power_limit: float | None = None
    performance: str = ""  #: performance state, from P0 (fastest) to P12
    links: tuple[GpuLink, ...] = ()
    processes: tuple[GpuProcess, ...] = ()
    #: error that the driver reports instead of values: "GPU is lost", "GPU requires reset", "Unknown Error"
    fault: str = ""
    #: action that the driver requires: "Reset", "Reboot", "Drain P2P", "Drain and Reset"; empty for none
    recovery: str = ""
    ecc_pending: bool | None = None  #: whether ECC will be enabled after the next reset
    mig_pending: bool | None = None  #: whether MIG will be enabled after the next reset
    sram_threshold_exceeded: bool | None = None  #: more uncorrectable SRAM errors than the vendor tolerates
    remap_banks_spent: int | None = None  #: memory banks with no spare row left
    temperature_margin: int | None = None  #: degrees below the operating limit (T.Limit)
    #: whether the card has joined the fabric of switches; ``None``: no fabric, or not reported
    fabric: bool | None = None
    fabric_state: str = ""  #: state of the fabric, as the driver's tool reports it: "Completed, Success", "In Progress"
    clique: str = ""  #: cards of one clique reach each other through the fabric


@dataclass(frozen=True, slots=True)
class GpuEvent:
    """An event that a card reported in the kernel log. ``at`` is UTC, ISO 8601; empty if the log has no time.

    ``meaning`` and ``asks`` are sentences without a full stop: what the number means, and what the vendor recommends.
    """

    number: int
    bus: str  #: PCI address as ``0000:3b:00``
    at: str
    text: str  #: the line as logged: untrusted
    count: int = 1  #: how often the card reported this number in the period that was read; ``at`` is the last time
    meaning: str = ""
    asks: str = ""
