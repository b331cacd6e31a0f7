"""The values of a GPU in reports. Each value is declared once for HTML page, console, CSV, metrics and comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from hostwright.audit.hardware.gpu import EccCounts, Gpu

UNKNOWN = "–"
#: function that returns a value of a GPU as untrusted text, empty if not reported
Text = Callable[[Gpu], str]


@dataclass(frozen=True, slots=True)
class Gauge:
    """A Prometheus metric for a value of a GPU.

    ``numbers`` are keyed by the value of the label ``kind``. For a metric without labels, the only key is an empty
    text.
    """

    name: str
    help: str
    numbers: Callable[[Gpu], Mapping[str, float | None]]


@dataclass(frozen=True, slots=True)
class GpuColumn:
    """One value of a GPU: its name on the HTML page and in the CSV file, its text, and whether it needs attention."""

    name: str
    text: Text
    bad: Callable[[Gpu], bool | None] = lambda _: False
    head: str = ""  #: heading of the column on the console; empty for a column that is not shown
    gauge: Gauge | None = None
    #: name and text of the value for histories and comparisons; ``None`` if not compared
    compared: tuple[str, Text] | None = None


def _number(value: int | None, unit: str = "") -> str:
    return "" if value is None else f"{value}{unit}"


def _watts(value: float | None) -> str:
    return "" if value is None else f"{value:.0f} W"


def _gibibytes(value: int | None) -> str:
    return "" if value is None else f"{value / 2**30:.1f}".removesuffix(".0") + " GiB"


def _yes(value: bool | None) -> str:
    return "" if value is None else "yes" if value else "no"


def _on(value: bool | None) -> str:
    return "" if value is None else "on" if value else "off"


def _both(first: int | None, second: int | None) -> str:
    return "" if first is second is None else f"{_number(first) or UNKNOWN}/{_number(second) or UNKNOWN}"


def _ecc(counts: EccCounts) -> tuple[int | None, int | None]:
    """Return the numbers of uncorrected and of corrected errors. Without totals in ``counts``, return the sums over all
    memories.
    """
    return (
        _sum(counts.uncorrected, (counts.sram_uncorrected, counts.dram_uncorrected)),
        _sum(counts.corrected, (counts.sram_corrected, counts.dram_corrected)),
    )


def _sum(total: int | None, parts: Iterable[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return total if total is not None else sum(known) if known else None


def _down(gpu: Gpu) -> list[str]:
    return [str(link.number) for link in gpu.links if not link.active]


def _links(gpu: Gpu) -> str:
    total, down = len(gpu.links), _down(gpu)
    return (f"{total - len(down)} of {total}" + (f"; down: {', '.join(down)}" if down else "")) if total else ""


def _fabric(gpu: Gpu) -> str:
    return ", clique ".join(filter(None, (gpu.fabric_state, gpu.clique)))


def _mig(gpu: Gpu) -> str:
    return f"on, {_number(gpu.mig_instances) or UNKNOWN} instances" if gpu.mig else _on(gpu.mig)


def _hot(gpu: Gpu) -> bool:
    limit = gpu.temperature_slowdown
    return gpu.temperature is not None and limit is not None and gpu.temperature >= limit


def _narrow(gpu: Gpu) -> bool:
    return gpu.pcie_width is not None and gpu.pcie_width_max is not None and gpu.pcie_width < gpu.pcie_width_max


GPU_COLUMNS = (
    GpuColumn("model", lambda gpu: gpu.model, head="model"),
    GpuColumn("VBIOS", lambda gpu: gpu.vbios, head="VBIOS", compared=("vbios", lambda gpu: gpu.vbios)),
    GpuColumn(
        "memory",
        lambda gpu: _gibibytes(gpu.memory_bytes),
        head="memory",
        gauge=Gauge("hostwright_gpu_memory_bytes", "Memory of the card", lambda gpu: {"": gpu.memory_bytes}),
        compared=("memory", lambda gpu: "" if gpu.memory_bytes is None else f"{gpu.memory_bytes >> 20} MiB"),
    ),
    GpuColumn("memory used", lambda gpu: _gibibytes(gpu.memory_used_bytes)),
    GpuColumn(
        "PCIe generation, current/maximum",
        lambda gpu: _both(gpu.pcie_generation, gpu.pcie_generation_max),
        head="PCIe gen",
    ),
    GpuColumn(
        "PCIe lanes, current/maximum",
        lambda gpu: _both(gpu.pcie_width, gpu.pcie_width_max),
        _narrow,
        head="lanes",
        gauge=Gauge("hostwright_gpu_pcie_width_lanes", "PCIe lanes in use", lambda gpu: {"": gpu.pcie_width}),
    ),
    GpuColumn("PCIe replays", lambda gpu: _number(gpu.pcie_replays)),
    GpuColumn(
        "ECC", lambda gpu: _on(gpu.ecc), lambda gpu: gpu.ecc is False, compared=("ecc", lambda gpu: _on(gpu.ecc))
    ),
    GpuColumn(
        "ECC errors since driver load, uncorr./corr.",
        lambda gpu: _both(*_ecc(gpu.ecc_volatile)),
        lambda gpu: bool(_ecc(gpu.ecc_volatile)[0]),
        head="ECC u/c",
        gauge=Gauge(
            "hostwright_gpu_ecc_errors",
            "ECC errors since the driver was loaded",
            lambda gpu: {"corrected": gpu.ecc_volatile.corrected, "uncorrected": gpu.ecc_volatile.uncorrected},
        ),
    ),
    GpuColumn(
        "ECC errors in total, uncorr./corr.",
        lambda gpu: _both(*_ecc(gpu.ecc_aggregate)),
        lambda gpu: bool(_ecc(gpu.ecc_aggregate)[0]),
    ),
    GpuColumn("MIG", _mig, compared=("mig", lambda gpu: _on(gpu.mig))),
    GpuColumn(
        "retired pages, double/single bit",
        lambda gpu: _both(gpu.retired_double_bit, gpu.retired_single_bit),
        lambda gpu: bool(gpu.retired_double_bit),
        head="retired",
    ),
    GpuColumn("retirement pending", lambda gpu: _yes(gpu.retirement_pending), lambda gpu: gpu.retirement_pending),
    GpuColumn(
        "remapped rows, uncorr./corr.",
        lambda gpu: _both(gpu.remapped_uncorrected, gpu.remapped_corrected),
        lambda gpu: bool(gpu.remapped_uncorrected),
        head="remapped",
        gauge=Gauge(
            "hostwright_gpu_remapped_rows",
            "Rows remapped for uncorrectable errors",
            lambda gpu: {"": gpu.remapped_uncorrected},
        ),
    ),
    GpuColumn("remap pending", lambda gpu: _yes(gpu.remap_pending), lambda gpu: gpu.remap_pending),
    GpuColumn("remap failed", lambda gpu: _yes(gpu.remap_failed), lambda gpu: gpu.remap_failed),
    GpuColumn(
        "temperature",
        lambda gpu: _number(gpu.temperature, " °C"),
        _hot,
        head="temperature",
        gauge=Gauge("hostwright_gpu_temperature_celsius", "Temperature of the card", lambda gpu: {"": gpu.temperature}),
    ),
    GpuColumn("slows down at", lambda gpu: _number(gpu.temperature_slowdown, " °C")),
    GpuColumn(
        "power",
        lambda gpu: _watts(gpu.power),
        head="power",
        gauge=Gauge("hostwright_gpu_power_watts", "Power draw of the card", lambda gpu: {"": gpu.power}),
    ),
    GpuColumn(
        "power limit",
        lambda gpu: _watts(gpu.power_limit),
        compared=("power limit", lambda gpu: _watts(gpu.power_limit)),
    ),
    GpuColumn("performance state", lambda gpu: gpu.performance),
    GpuColumn("slowed down by", lambda gpu: ", ".join(gpu.slowdowns)),
    GpuColumn("persistence", lambda gpu: _on(gpu.persistence)),
    GpuColumn("NVLinks up", _links, lambda gpu: bool(_down(gpu))),
    GpuColumn("fabric", _fabric, lambda gpu: gpu.fabric is False),
)
