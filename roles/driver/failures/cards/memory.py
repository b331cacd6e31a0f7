"""Failures of a card's memory: ECC errors, and rows and pages taken out of use because of them."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.failures import AuditContext, FailureRule, Hardware, Sign
from hostwright.roles import EccCounts, Gpu, Pattern
from hostwright.standard.roles.driver.failures.cards.thresholds import (
    CORRECTED,
    DRAM_CORRECTED,
    REMAPPED_ROWS,
    RETIRED_PAGES,
    SRAM_CORRECTED,
)
from hostwright.standard.roles.driver.failures.cards.treatments import REBOOT, RMA
from hostwright.standard.roles.driver.gpus import smi

#: pattern of gaming and workstation cards, which NVIDIA delivers with ECC off
_FOR_DESKS = Pattern(r"(?i)\b(?:GeForce|Quadro|RTX|TITAN)\b")


def card(gpu: Gpu) -> str:
    """Return a card's index (for ``nvidia-smi -i``) and PCI address, as text for evidence."""
    return f"card {gpu.index} ({gpu.bus})"


def _remap_pending(ctx: AuditContext) -> Iterator[str]:
    """nvidia-smi reports a row remapping as pending."""
    for gpu in smi(ctx).gpus:
        if gpu.remap_pending:
            yield f"{card(gpu)}: a row remapping is pending{_rows(gpu)}"


def _remap_failed(ctx: AuditContext) -> Iterator[str]:
    """nvidia-smi reports that a row remapping failed."""
    for gpu in smi(ctx).gpus:
        if gpu.remap_failed:
            yield f"{card(gpu)}: a row remapping failed{_rows(gpu)}"


def _remapped_many(ctx: AuditContext) -> Iterator[str]:
    """nvidia-smi reports more than 512 rows as remapped for uncorrectable errors."""
    for gpu in smi(ctx).gpus:
        if (gpu.remapped_uncorrected or 0) > REMAPPED_ROWS:
            yield (
                f"{card(gpu)}: {gpu.remapped_uncorrected} rows are remapped for uncorrectable errors, "
                f"the limit is {REMAPPED_ROWS}"
            )


def _uncorrected(ctx: AuditContext) -> Iterator[str]:
    """nvidia-smi counts uncorrected ECC errors since the driver was loaded (volatile)."""
    for gpu in smi(ctx).gpus:
        ecc = gpu.ecc_volatile
        counts = {"in all": ecc.uncorrected, "SRAM": ecc.sram_uncorrected, "DRAM": ecc.dram_uncorrected}
        seen = [f"{count} {where}" for where, count in counts.items() if count]
        if seen:
            yield f"{card(gpu)}: uncorrected ECC errors since the driver was loaded: {', '.join(seen)}"


def _sram_threshold(ctx: AuditContext) -> Iterator[str]:
    """nvidia-smi reports that the threshold of uncorrectable SRAM errors is exceeded."""
    for gpu in smi(ctx).gpus:
        if gpu.sram_threshold_exceeded:
            count = gpu.ecc_aggregate.sram_uncorrected
            seen = "" if count is None else f": {count} in its life"
            yield f"{card(gpu)}: more uncorrectable SRAM errors than its threshold{seen}"


def _corrected(ctx: AuditContext) -> Iterator[str]:
    """nvidia-smi counts more than 10 000 corrected ECC errors in SRAM, 20 000 000 in DRAM, or 50 000 000 in total,
    since the driver was loaded or in the card's life.
    """
    for gpu in smi(ctx).gpus:
        for since, ecc in (("since the driver was loaded", gpu.ecc_volatile), ("in its life", gpu.ecc_aggregate)):
            for where, count, limit in _limits(ecc):
                if (count or 0) > limit:
                    yield f"{card(gpu)}: {count} corrected ECC errors {where} {since}, the limit is {limit}"


def _limits(ecc: EccCounts) -> tuple[tuple[str, int | None, int], ...]:
    return (
        ("in SRAM", ecc.sram_corrected, SRAM_CORRECTED),
        ("in DRAM", ecc.dram_corrected, DRAM_CORRECTED),
        ("in all", ecc.corrected, CORRECTED),
    )


def _retirement_pending(ctx: AuditContext) -> Iterator[str]:
    """nvidia-smi reports the retirement of a memory page as pending."""
    for gpu in smi(ctx).gpus:
        if gpu.retirement_pending:
            yield f"{card(gpu)}: the retirement of a page is pending ({_pages(gpu)} retired)"


def _retired_many(ctx: AuditContext) -> Iterator[str]:
    """nvidia-smi counts more than 10 retired memory pages on a card."""
    for gpu in smi(ctx).gpus:
        if _pages(gpu) > RETIRED_PAGES:
            yield (
                f"{card(gpu)}: {_pages(gpu)} pages are retired, {gpu.retired_double_bit or 0} of them for double-bit "
                f"errors, the limit is {RETIRED_PAGES}"
            )


def _ecc_off(ctx: AuditContext) -> Iterator[str]:
    """nvidia-smi reports ECC as off on a data centre card, which NVIDIA delivers with ECC on: its model has none of the
    words GeForce, Quadro, RTX and TITAN.
    """
    for gpu in smi(ctx).gpus:
        if gpu.ecc is False and not _FOR_DESKS.search(gpu.model):
            later = ", and will be on after the next reset" if gpu.ecc_pending else ""
            yield f"{card(gpu)}: ECC is switched off ({gpu.model or 'model unknown'}){later}"


def _rows(gpu: Gpu) -> str:
    counts = {"corrected": gpu.remapped_corrected, "uncorrectable": gpu.remapped_uncorrected}
    known = [f"{count} for {why} errors" for why, count in counts.items() if count is not None]
    return f"; rows remapped: {', '.join(known)}" if known else ""


def _pages(gpu: Gpu) -> int:
    return (gpu.retired_single_bit or 0) + (gpu.retired_double_bit or 0)


RESET = "reset the card (nvidia-smi --gpu-reset -i N, with nothing using it), or reboot"
AZURE = "Azure/azurehpc-health-checks azure_gpu_ecc.nhc"
GCM = "facebookresearch/gcm check-nvidia-smi"

MEMORY = (
    FailureRule(
        "row-remap-failed",
        r"Remapping Failure Occurred {0,40}: Yes"
        r"|Row remap(?:ping)? (?:error|failure)|Row Remapper: (?:Error|Fail)|Failed to remap row",
        "a defective row of a card's memory could not be replaced by a spare row",
        "Drain the host and have the card replaced",
        f"{AZURE}; NVIDIA GPU memory error management",
        sign=Sign("gpu", _remap_failed),
        treatment=Hardware("hand over", RMA, tries=0),
    ),
    FailureRule(
        "row-remap-pending",
        r"Remapping Pending {0,40}: Yes",
        "a defective row of a card's memory will be replaced by a spare row at the card's next reset",
        f"Drain the host and {RESET}",
        f"{AZURE}; NVIDIA GPU memory error management",
        sign=Sign("gpu", _remap_pending),
        treatment=Hardware("power cycle", REBOOT, gently=True),
    ),
    FailureRule(
        "rows-remapped-many",
        "",
        "a card has replaced very many rows of its memory because of errors that ECC could not correct",
        "Drain the host and have the card replaced",
        AZURE,
        sign=Sign("gpu", _remapped_many),
        treatment=Hardware("hand over", "Azure/azurehpc-health-checks azure_gpu_ecc.nhc, NHC2007", tries=0),
    ),
    FailureRule(
        "ecc-uncorrected",
        r"uncorrectable ECC error (?:was )?(?:encountered|detected)|CUDA_ERROR_ECC_UNCORRECTABLE"
        r"|cudaErrorECCUncorrectable",
        "a card's memory had errors that ECC could not correct: the programs then failed, or computed with wrong data",
        f"Drain the host and {RESET}; then run dcgmi diag -r 3, and have the card replaced if it recurs",
        f"{GCM}; {AZURE}",
        sign=Sign("gpu", _uncorrected),
        treatment=Hardware("power cycle", REBOOT, gently=True),
    ),
    FailureRule(
        "sram-threshold-exceeded",
        "",
        "a card's SRAM had more errors that ECC could not correct than NVIDIA tolerates",
        "Drain the host and have the card replaced",
        RMA,
        sign=Sign("gpu", _sram_threshold),
        treatment=Hardware("hand over", RMA, tries=0),
    ),
    FailureRule(
        "ecc-corrected-many",
        "",
        "a card's memory has far more errors than usual, all of which ECC has corrected so far",
        "Run dcgmi diag -r 3 on the card at the next opportunity, and have the card replaced if that fails",
        f"{AZURE}; {GCM}",
        sign=Sign("gpu", _corrected, grave=False),
    ),
    FailureRule(
        "page-retirement-pending",
        r"Pending (?:Page )?Blacklist {0,40}: Yes|Pending Page Retirement {0,40}: Yes",
        "a page of a card's memory will be retired when the driver is next loaded",
        f"Drain the host and {RESET}",
        f"{GCM}; NVIDIA dynamic page retirement",
        sign=Sign("gpu", _retirement_pending),
        treatment=Hardware("power cycle", REBOOT, gently=True),
    ),
    FailureRule(
        "pages-retired-many",
        "",
        "many pages of a card's memory were retired",
        "Run dcgmi diag -r 3 on the card at the next opportunity, and have the card replaced if that fails or the "
        "count grows; at 62 its table is full",
        f"{GCM}; {AZURE}",
        sign=Sign("gpu", _retired_many, grave=False),
    ),
    FailureRule(
        "ecc-off",
        "",
        "ECC is off, so errors of a card's memory corrupt results unnoticed",
        "Unless this is intended: drain the host, run nvidia-smi -e 1 -i N, and reboot",
        "NVIDIA dynamic page retirement and GPU memory error management, which need ECC",
        sign=Sign("gpu", _ecc_off, grave=False),
    ),
)
