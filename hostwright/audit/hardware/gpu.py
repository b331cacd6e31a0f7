"""The state of one GPU according to its driver. ``None`` means that the card or the driver does not report a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EccCounts:
    """ECC error counts of a card, either since its driver was loaded (volatile) or over its lifetime (aggregate)."""

    corrected: int | None = None
    uncorrected: int | None = None
    sram_corrected: int | None = None
    sram_uncorrected: int | None = None
    dram_corrected: int | None = None
    dram_uncorrected: int | None = None


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that uses a GPU."""

    pid: int
    name: str
    kind: str  #: C: compute, G: graphics
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class GpuLink:
    """One link from a card to another card, or to a switch."""

    number: int
    active: bool


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. Widths are in PCIe lanes, temperatures in degrees Celsius, power in watts."""

    index: int
    bus: str  #: PCI address in lowercase: ``0000:3b:00.0``
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
    retired_single_bit: int | None = None  #: number of memory pages retired after many corrected errors
    retired_double_bit: int | None = None  #: number of memory pages retired after an uncorrected error
    retirement_pending: bool | None = None
    remapped_corrected: int | None = None
    remapped_uncorrected: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    persistence: bool | None = None
    mig: bool | None = None
    mig_instances: int | None = None
    slowdowns: tuple[str, ...] = ()  #: active reasons for reduced clocks, as the driver's tool names them
    temperature: int | None = None
    temperature_slowdown: int | None = None  #: temperature from which the hardware slows the card down
    temperature_maximum: int | None = None  #: temperature at which the hardware shuts the card down
    power: float | None = None
    power_limit: float | None = None
    performance: str = ""  #: performance state: P0 (fastest) to P12
    links: tuple[GpuLink, ...] = ()
    processes: tuple[GpuProcess, ...] = ()
    #: error that the driver reports instead of values, such as "GPU is lost", "GPU requires reset" or "Unknown Error"
    fault: str = ""
    #: action that the driver requires: "Reset", "Reboot", "Drain P2P" or "Drain and Reset"; empty for none
    recovery: str = ""
    ecc_pending: bool | None = None  #: whether ECC will be enabled after the next reset
    mig_pending: bool | None = None  #: whether MIG will be enabled after the next reset
    #: whether the card has more uncorrectable SRAM errors than the vendor tolerates
    sram_threshold_exceeded: bool | None = None
    remap_banks_spent: int | None = None  #: number of memory banks without a spare row
    temperature_margin: int | None = None  #: degrees until the card reaches its operating limit (T.Limit)
    #: whether the card has joined the fabric of switches; ``None``: it has no fabric, or does not report it
    fabric: bool | None = None
    fabric_state: str = ""  #: state of the fabric according to the driver's tool: "Completed, Success", "In Progress"
    clique: str = ""  #: identifier of a group of cards that reach each other through the fabric


@dataclass(frozen=True, slots=True)
class GpuEvent:
    """An event that a card reported in the kernel log. ``at`` is UTC, ISO 8601; empty if the log contains no time.

    ``meaning`` and ``asks`` are sentences without a full stop: the meaning of the event number, and the action that the
    vendor recommends.
    """

    number: int
    bus: str  #: PCI address without the function: ``0000:3b:00``
    at: str
    text: str  #: line of the log: untrusted
    count: int = 1  #: number of such events of the card in the period that was read; ``at`` is the time of the last one
    meaning: str = ""
    asks: str = ""
