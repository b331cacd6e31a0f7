"""Parser of a ``<gpu>`` element of nvidia-smi's XML into a ``Gpu``, for all driver generations.

The newest XML element for a value is tried first. Differences between driver generations:

- R535 renamed ``clocks_throttle_reasons`` to ``clocks_event_reasons`` and ``power_readings`` to
  ``gpu_power_readings``;
- ECC errors are counted by ``single_bit`` and ``double_bit`` before Turing, by ``sram_…`` and ``dram_…`` since Turing,
  and newer drivers distinguish parity and SEC-DED errors of the SRAM of Ampere and newer;
- cards before Ampere retire pages, later cards remap rows;
- cards since Ada give temperature thresholds as distances from a limit (T.Limit), no longer as temperatures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.roles import EccCounts, Gpu, GpuProcess
from hostwright.standard.roles.driver.nvsmi.fields import (
    LOST,
    MAX_SMALL_COUNT,
    NEEDS_RESET,
    UNKNOWN_ERROR,
    bus_address,
    count,
    degrees,
    lanes,
    line,
    raw,
    size_bytes,
    text_of,
    total,
    watts,
    yes,
)

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

MAX_PROCESSES = 1024  #: maximum number of processes to read for one GPU
_REASON = re.compile(r"clocks_(?:event|throttle)_reason_([a-z0-9_]{1,64})")
_CACHES = ("register_file", "l1_cache", "l2_cache", "texture_memory", "texture_shm", "cbu")
_NAMELESS = frozenset({"N/A", "[N/A]", "[Not Found]", "[Insufficient Permissions]", "[Unknown Error]"})
_LINK = "pci/pci_gpu_link_info"
_RETIRED = "retired_pages/%s/retired_count"


def read_gpu(index: int, gpu: Element) -> Gpu:
    """Parse ``gpu``, the report's element number ``index``. Values that cannot be parsed are unknown."""
    now, slowdown, maximum, margin = _temperatures(gpu.find("temperature"))
    mig = yes(gpu, "mig_mode/current_mig")
    fabric, fabric_state, clique = _fabric(gpu.find("fabric"))
    return Gpu(
        index=index,
        bus=bus_address(raw(gpu, "pci/pci_bus_id"), gpu.get("id", "")[:64]),
        uuid=text_of(gpu, "uuid"),
        model=text_of(gpu, "product_name"),
        serial=text_of(gpu, "serial"),
        vbios=text_of(gpu, "vbios_version"),
        memory_bytes=size_bytes(gpu, "fb_memory_usage/total"),
        memory_used_bytes=size_bytes(gpu, "fb_memory_usage/used"),
        pcie_generation=count(gpu, f"{_LINK}/pcie_gen/current_link_gen", most=9),
        pcie_generation_max=count(gpu, f"{_LINK}/pcie_gen/max_link_gen", most=9),
        pcie_width=lanes(gpu, f"{_LINK}/link_widths/current_link_width"),
        pcie_width_max=lanes(gpu, f"{_LINK}/link_widths/max_link_width"),
        pcie_replays=count(gpu, "pci/replay_counter", MAX_SMALL_COUNT),
        ecc=yes(gpu, "ecc_mode/current_ecc"),
        ecc_volatile=_ecc(gpu.find("ecc_errors/volatile")),
        ecc_aggregate=_ecc(gpu.find("ecc_errors/aggregate")),
        retired_single_bit=count(gpu, _RETIRED % "multiple_single_bit_retirement", MAX_SMALL_COUNT),
        retired_double_bit=count(gpu, _RETIRED % "double_bit_retirement", MAX_SMALL_COUNT),
        retirement_pending=_either(gpu, "retired_pages/pending_retirement", "retired_pages/pending_blacklist"),
        remapped_corrected=count(gpu, "remapped_rows/remapped_row_corr", MAX_SMALL_COUNT),
        remapped_uncorrected=count(gpu, "remapped_rows/remapped_row_unc", MAX_SMALL_COUNT),
        remap_pending=yes(gpu, "remapped_rows/remapped_row_pending"),
        remap_failed=yes(gpu, "remapped_rows/remapped_row_failure"),
        persistence=yes(gpu, "persistence_mode"),
        mig=mig,
        mig_instances=None if mig is None else len(gpu.findall("mig_devices/mig_device")),
        slowdowns=_slowdowns(gpu),
        temperature=now,
        temperature_slowdown=slowdown,
        temperature_maximum=maximum,
        power=_power(gpu, "power_draw", "average_power_draw", "instant_power_draw"),
        power_limit=_power(gpu, "current_power_limit", "enforced_power_limit", "power_limit"),
        performance=_performance(gpu),
        processes=tuple(_processes(gpu))[:MAX_PROCESSES],
        fault=_fault(gpu),
        recovery=_recovery(gpu),
        ecc_pending=yes(gpu, "ecc_mode/pending_ecc"),
        mig_pending=yes(gpu, "mig_mode/pending_mig"),
        sram_threshold_exceeded=yes(gpu, "ecc_errors/aggregate/sram_threshold_exceeded"),
        remap_banks_spent=count(
            gpu, "remapped_rows/row_remapper_histogram/row_remapper_histogram_none", MAX_SMALL_COUNT
        ),
        temperature_margin=margin,
        fabric=fabric,
        fabric_state=fabric_state,
        clique=clique,
    )


#: texts that nvidia-smi prints for the states in ``nvmlGpuFabricState_t``
_FABRIC_STATES = {"Not Started", "In Progress", "Completed"}


def _fabric(part: Element | None) -> tuple[bool | None, str, str]:
    """Return whether the GPU joined its fabric, nvidia-smi's text for the state, and the GPU's clique.

    GPUs without NVLink switches, and GPUs before Hopper, have no value (``N/A``).
    """
    state, status = text_of(part, "state"), text_of(part, "status")
    if state not in _FABRIC_STATES:
        return None, "", ""
    cluster, number = text_of(part, "clusterUuid"), count(part, "cliqueId", MAX_SMALL_COUNT)
    clique = "" if number is None else f"{cluster}.{number}" if cluster.strip("0-") else str(number)
    joined = state == "Completed" and status in {"", "Success"}
    return joined, ", ".join(filter(None, (state, status))), clique if joined else ""


def _ecc(counts: Element | None) -> EccCounts:
    if counts is None:
        return EccCounts()
    if counts.find("single_bit") is not None or counts.find("double_bit") is not None:
        return _ecc_by_bits(counts.find("single_bit"), counts.find("double_bit"))
    sram, dram = count(counts, "sram_correctable"), count(counts, "dram_correctable")
    sram_unc, dram_unc = _sram_uncorrectable(counts), count(counts, "dram_uncorrectable")
    return EccCounts(total(sram, dram), total(sram_unc, dram_unc), sram, sram_unc, dram, dram_unc)


def _sram_uncorrectable(counts: Element) -> int | None:
    parts = total(count(counts, "sram_uncorrectable_parity"), count(counts, "sram_uncorrectable_secded"))
    return count(counts, "sram_uncorrectable") if parts is None else parts


def _ecc_by_bits(single: Element | None, double: Element | None) -> EccCounts:
    def both(path: str) -> tuple[int | None, int | None]:
        return count(single, path), count(double, path)

    dram, dram_unc = both("device_memory")
    caches = [both(cache) for cache in _CACHES]
    sram = total(*(correctable for correctable, _ in caches))
    sram_unc = total(*(uncorrectable for _, uncorrectable in caches))
    corrected, uncorrected = both("total")
    return EccCounts(
        total(sram, dram) if corrected is None else corrected,
        total(sram_unc, dram_unc) if uncorrected is None else uncorrected,
        sram,
        sram_unc,
        dram,
        dram_unc,
    )


def _temperatures(part: Element | None) -> tuple[int | None, int | None, int | None, int | None]:
    """Return temperature, slowdown threshold, shutdown threshold, and distance to the limit (T.Limit).

    If the report has only T.Limit distances, the thresholds are computed and may be off by a degree or two.
    """
    now, margin = degrees(part, "gpu_temp"), degrees(part, "gpu_temp_tlimit")

    def threshold(name: str) -> int | None:
        direct = degrees(part, f"gpu_temp_{name}_threshold")
        offset = degrees(part, f"gpu_temp_{name}_tlimit_threshold")
        if direct is not None or now is None or margin is None or offset is None:
            return direct
        return now + margin - offset

    return now, threshold("slow"), threshold("max"), margin


def _power(gpu: Element, *names: str) -> float | None:
    for part in ("gpu_power_readings", "power_readings"):
        for name in names:
            value = watts(gpu, f"{part}/{name}")
            if value is not None:
                return value
    return None


def _either(gpu: Element, *paths: str) -> bool | None:
    answers = [yes(gpu, path) for path in paths]
    return next((answer for answer in answers if answer is not None), None)


def _slowdowns(gpu: Element) -> tuple[str, ...]:
    names = []
    for part in ("clocks_event_reasons", "clocks_throttle_reasons"):
        for reason in gpu.findall(f"{part}/*")[:64]:
            match = _REASON.fullmatch(reason.tag)
            if match and yes(reason):
                names.append(match[1])
    return tuple(dict.fromkeys(names))


def _performance(gpu: Element) -> str:
    words = text_of(gpu, "performance_state")
    return words if re.fullmatch(r"P(?:[0-9]|1[0-5])", words) else ""


def _processes(gpu: Element) -> Iterator[GpuProcess]:
    for process in gpu.findall("processes/process_info"):
        pid = count(process, "pid", MAX_SMALL_COUNT)
        if pid:
            name, kind = line(process, "process_name"), text_of(process, "type")
            yield GpuProcess(
                pid,
                "" if name in _NAMELESS else name,
                kind if re.fullmatch(r"[A-Z+]{1,8}", kind) else "",
                size_bytes(process, "used_memory"),
            )


def _fault(gpu: Element) -> str:
    """Return the error text that the driver reports in place of values; else empty.

    Process names are ignored, because they can be any text.
    """
    parts = (part for part in gpu if part.tag not in ("processes", "accounted_processes"))
    words = {raw(element).lower() for part in parts for element in part.iter()}
    for fault in (LOST, NEEDS_RESET):
        if fault.lower() in words:
            return fault
    # A healthy GPU may report "Unknown Error" for single values, but not for the memory usage.
    return UNKNOWN_ERROR if raw(gpu, "fb_memory_usage/total").lower() == UNKNOWN_ERROR.lower() else ""


def _recovery(gpu: Element) -> str:
    if action := text_of(gpu, "gpu_recovery_action"):
        return action
    if yes(gpu, "gpu_reset_status/reset_required"):
        return "Reset"
    return "Drain and Reset" if yes(gpu, "gpu_reset_status/drain_and_reset_recommended") else ""
