"""The state of one GPU as its driver reports it. ``None`` means that the driver does not report the value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EccCounts:
    """ECC error counts of a GPU, either since the driver was loaded (volatile) or over the GPU's lifetime
    (aggregate).
    """

    corrected: int | None = None
    uncorrected: int | None = None
    sram_corrected: int | None = None
    sram_uncorrected: int | None = None
    dram_corrected: int | None = None
    dram_uncorrected: int | None = None


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process on the host that uses a GPU."""

    pid: int
    name: str
    kind: str  #: type of the process's GPU use: ``C`` for compute, ``G`` for graphics
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class GpuLink:
    """One NVLink from a GPU to another GPU, or to a switch."""

    number: int
    active: bool


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. Widths are in PCIe lanes, temperatures in degrees Celsius, power in watts."""

    index: int
    bus: str  #: PCI address in lowercase, such as ``0000:3b:00.0``
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
    ecc: bool | None = None
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
    slowdowns: tuple[str, ...] = ()  #: active reasons for reduced clocks, in the words of the driver's tool
    temperature: int | None = None
    temperature_slowdown: int | None = None  #: temperature in °C from which the hardware reduces the clocks
    temperature_maximum: int | None = None  #: temperature in °C at which the hardware shuts the GPU down
    power: float | None = None
    power_limit: float | None = None
    performance: str = ""  #: performance state of the GPU, from ``P0`` (fastest) to ``P12``
    links: tuple[GpuLink, ...] = ()
    processes: tuple[GpuProcess, ...] = ()
    #: error that the driver reports instead of values, such as "GPU is lost"
    fault: str = ""
    #: action that the driver requires to recover the GPU, such as "Reset"; empty for none
    recovery: str = ""
    ecc_pending: bool | None = None  #: whether ECC will be enabled after the next reset
    mig_pending: bool | None = None  #: whether MIG will be enabled after the next reset
    #: whether the GPU has more uncorrectable SRAM errors than the vendor tolerates
    sram_threshold_exceeded: bool | None = None
    remap_banks_spent: int | None = None  #: number of memory banks without a spare row
    temperature_margin: int | None = None  #: number of degrees Celsius until the GPU reaches the operating limit
    #: whether the GPU is connected to the NVLink switches; ``None`` if unknown or without switches
    fabric: bool | None = None
    fabric_state: str = ""  #: state of the GPU's connection to the NVLink switches, such as "In Progress"
    clique: str = ""  #: identifier of the group of GPUs that reach each other through NVLink switches


@dataclass(frozen=True, slots=True)
class GpuEvent:
    """An event of a GPU in the kernel log. ``at`` is UTC, ISO 8601; empty if the log contains no time.

    ``meaning`` is the meaning of the event number, and ``asks`` the action that the vendor recommends. Both are
    sentences without a full stop.
    """

    number: int
    bus: str  #: PCI address without the function, such as ``0000:3b:00``
    at: str
    text: str  #: line of the kernel log about the event
    count: int = 1  #: number of equal events in the log. The time of the last event is in ``at``.
    meaning: str = ""
    asks: str = ""
