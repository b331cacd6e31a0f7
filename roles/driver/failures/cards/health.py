"""Failures in a card's operation: heat, clocks, persistence mode, MIG, VBIOS."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.failures import AuditContext, FailureRule, ForPeople, Sign
from hostwright.roles import Gpu
from hostwright.standard.roles.driver.failures.cards.memory import card
from hostwright.standard.roles.driver.failures.cards.thresholds import BRAKED, HOT
from hostwright.standard.roles.driver.failures.units import PERSISTENCED, UNITS
from hostwright.standard.roles.driver.gpus import smi


def _hot(ctx: AuditContext) -> Iterator[str]:
    """A card has reached its slowdown temperature, or its clocks are limited by heat (hw_thermal_slowdown,
    sw_thermal_slowdown).
    """
    for gpu in smi(ctx).gpus:
        reasons, limit = _among(gpu, HOT), gpu.temperature_slowdown
        warm = gpu.temperature is not None and limit is not None and 0 < limit <= gpu.temperature
        if reasons or warm:
            degrees = "" if gpu.temperature is None else f" at {gpu.temperature} °C"
            bound = "" if limit is None else f", it slows down at {limit} °C"
            yield f"{card(gpu)}:{degrees}{bound}{_active(reasons)}".replace(":,", ":")


def _braked(ctx: AuditContext) -> Iterator[str]:
    """The hardware limits a card's clocks (hw_power_brake_slowdown, or hw_slowdown without heat)."""
    for gpu in smi(ctx).gpus:
        reasons = _among(gpu, BRAKED)
        if "hw_power_brake_slowdown" in reasons or (reasons and not _among(gpu, HOT)):
            power = "" if gpu.power is None or gpu.power_limit is None else f" {gpu.power} of {gpu.power_limit} W"
            yield f"{card(gpu)}:{power}{_active(reasons)}".replace(":,", ":")


def _persistence_off(ctx: AuditContext) -> Iterator[str]:
    """nvidia-smi reports persistence mode as off, although nvidia-persistenced runs."""
    # Another rule reports that nvidia-persistenced is not active.
    if UNITS.unit(ctx, PERSISTENCED).active != "active":
        return
    for gpu in smi(ctx).gpus:
        if gpu.persistence is False:
            yield f"{card(gpu)}: persistence mode is off"


def _mig_empty(ctx: AuditContext) -> Iterator[str]:
    """A card is in MIG mode and has no GPU instance."""
    for gpu in smi(ctx).gpus:
        if gpu.mig and gpu.mig_instances == 0:
            yield f"{card(gpu)}: MIG is on with 0 instances"


def _vbios_differs(ctx: AuditContext) -> Iterator[str]:
    """Cards of one model have different VBIOS versions on one host."""
    by_model: dict[str, dict[str, list[str]]] = {}
    for gpu in smi(ctx).gpus:
        if gpu.model and gpu.vbios:
            by_model.setdefault(gpu.model, {}).setdefault(gpu.vbios, []).append(card(gpu))
    for model, versions in by_model.items():
        if len(versions) > 1:
            each = (f"{version} on {', '.join(cards)}" for version, cards in sorted(versions.items()))
            yield f"{model}: {'; '.join(each)}"


def _among(gpu: Gpu, reasons: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(reason for reason in reasons if reason in gpu.slowdowns)


def _active(reasons: tuple[str, ...]) -> str:
    return f", active: {', '.join(reasons)}" if reasons else ""


HEALTH = (
    FailureRule(
        "gpu-hot",
        r"[^\n]*(?:thermal violation in GPU [0-9]{1,3}|in health system Thermal)[^\n]*",
        "a card is too hot and lowers its clocks",
        "Check fans, filters, blanking panels, the intake air's temperature, and neighbouring cards that block its "
        "air. If it is the only hot card of its model, have its cooler checked",
        "leptonai/gpud temperature and hw-slowdown; NVML clocks event reasons",
        sign=Sign("gpu", _hot, grave=False),
    ),
    FailureRule(
        "clocks-braked",
        "",
        "the hardware limits a card's clocks to half or less: the power supply signals it, or the card draws too "
        "much power",
        "Check again under load. If it persists, check power supplies, their redundancy, the rack's power cap and "
        "the card's cables, then reboot. If only this card is affected, have it replaced",
        "Azure/azurehpc-health-checks azure_gpu_clock_throttling.nhc; NVML clocks event reasons",
        sign=Sign("gpu", _braked, grave=False),
    ),
    FailureRule(
        "persistence-off",
        "",
        "persistence mode is off: the driver shuts an unused card down, so every program starts slowly and settings "
        "of the card are lost",
        "Run systemctl restart nvidia-persistenced, which switches it on. If the service is missing or stopped, "
        "provision again",
        "NVIDIA driver persistence; Azure/azurehpc-health-checks azure_gpu_persistence.nhc",
        sign=Sign("gpu", _persistence_off, (UNITS.states,), grave=False),
    ),
    FailureRule(
        "mig-without-instances",
        r"MIG mode is enabled, but no MIG devices|[Nn]o MIG (?:devices|GPU instances|compute instances) (?:were )?found"
        r"|[Nn]o GPU instances found: Not Found",
        "a card is in MIG mode and has no instances, so CUDA finds no device on it",
        "Create instances (nvidia-smi mig -cgi PROFILE -C -i N), or stop its users, switch MIG off (nvidia-smi -mig "
        "0 -i N) and reset the card or reboot",
        "NVIDIA/gpu-operator#132, NVIDIA/mig-parted#182",
        sign=Sign("gpu", _mig_empty),
        treatment=ForPeople(),
    ),
    FailureRule(
        "vbios-differs",
        "",
        "cards of one model in one host have different VBIOS versions, and may differ in clocks and power",
        "Get the right version from the host's vendor, and flash the cards that differ",
        "facebookresearch/gcm check-nvidia-smi; Azure/azurehpc-health-checks azure_gpu_vbios.nhc",
        sign=Sign("gpu", _vbios_differs, grave=False),
    ),
)
