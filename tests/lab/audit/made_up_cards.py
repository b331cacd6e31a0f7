"""Faults of cards themselves: memory, heat, power, modes, and incomplete output of nvidia-smi."""

from __future__ import annotations

from tests.lab.audit.made_up_case import log, made_up, together, xid
from tests.lab.audit.made_up_smi import (
    A10,
    A100,
    K80,
    T4,
    V100,
    V100_PCIE,
    blank,
    fails,
    on_bus,
    own,
    put,
    reasons,
    sample,
    two_cards,
    whole,
    works,
)

A100_MIG = "a100-sxm4-470.57.02-mig-remaps"
ECC = "ecc_errors/volatile"
LIFE = "ecc_errors/aggregate"
ROWS = "remapped_rows"
PAGES = "retired_pages"
SINGLE = f"{PAGES}/multiple_single_bit_retirement/retired_count"
DOUBLE = f"{PAGES}/double_bit_retirement/retired_count"
LOST = "GPU is lost"
NAMES = ("uuid", "product_name", "vbios_version", "pci")
HANDLE = "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  Reboot the system to recover\n"
FALL = (
    (0.5, "NVRM: GPU at PCI:0000:3b:00: GPU-c3e8866f"),
    xid(79, 0.5, "pid=4711, GPU has fallen off the bus."),
    (0.5, "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus."),
    xid(45, 0.5),
    xid(154, 0.5, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"),
)
#: rules that depend on nvidia-smi's report alone
NO_REPORT = (
    "gpu-needs-reset row-remap-failed row-remap-pending rows-remapped-many ecc-uncorrected sram-threshold-exceeded "
    "ecc-corrected-many page-retirement-pending pages-retired-many ecc-off gpu-hot clocks-braked persistence-off "
    "mig-without-instances fabric-not-joined fabric-apart vbios-differs gpu-missing pcie-width pcie-generation "
    "nvlink-partial gpu-less-than-before gpu-replaced"
)
#: for a host with cards that could not be read
REPORT = f"{NO_REPORT} cards"

MEMORY = (
    made_up("row remapping failed", sample(A100_MIG, A100, whole, put({f"{ROWS}/remapped_row_failure": "Yes"})),
            "row-remap-failed"),
    made_up("row remapping pending", sample(A100_MIG, A100, whole, put({f"{ROWS}/remapped_row_pending": "Yes"})),
            "row-remap-pending"),
    made_up("513 rows remapped", sample(A100_MIG, A100, whole, put({f"{ROWS}/remapped_row_unc": "513"})),
            "rows-remapped-many"),
    made_up("two uncorrected errors, and their rows wait for the reset", sample(A100_MIG, A100),
            "ecc-uncorrected row-remap-pending"),
    made_up("uncorrected errors of DRAM", own(put({f"{ECC}/dram_uncorrectable": "3"})), "ecc-uncorrected"),
    made_up("uncorrected errors and many pages of a V100", sample("v100-sxm2-450.80.02", V100),
            "ecc-uncorrected pages-retired-many"),
    made_up("SRAM's threshold, as R550 and newer tell it",
            sample(A100_MIG, A100, whole, put({f"{LIFE}/sram_threshold_exceeded": "Yes"})), "sram-threshold-exceeded"),
    made_up("a dying card, as R550 words it",
            sample("h100-550.90.07-threshold", A100, put({"product_name": "NVIDIA A100-SXM4-80GB"})),
            "sram-threshold-exceeded row-remap-failed ecc-uncorrected gpu-needs-reset"),
    made_up("corrected errors of SRAM since the driver was loaded",
            two_cards(put({f"{ECC}/sram_correctable": "10001"}, 1)), "ecc-corrected-many"),
    made_up("corrected errors of DRAM in the card's life", own(put({f"{LIFE}/dram_correctable": "20000001"})),
            "ecc-corrected-many"),
    made_up("page to be retired", own(put({f"{PAGES}/pending_retirement": "Yes"})), "page-retirement-pending"),
    made_up("K80 with a page to be retired, and no persistence daemon", sample("k80-418.40.04", K80),
            "page-retirement-pending persistence-off"),
    made_up("eleven pages retired", own(put({SINGLE: "9", DOUBLE: "2"})), "pages-retired-many"),
    made_up("ECC switched off", own(put({"ecc_mode/current_ecc": "Disabled"})), "ecc-off"),
)  # fmt: skip

HEALTH = (
    made_up("as warm as its slowdown temperature", own(works(), put({"temperature/gpu_temp": "93 C"})), "gpu-hot"),
    made_up("slowed down for heat", own(works(), reasons("hw_slowdown", "hw_thermal_slowdown")), "gpu-hot"),
    made_up("hot, with an uncorrected error and to be reset, as R535 words it",
            sample("h100-535.183.01-reset", A100, put({"product_name": "NVIDIA A100-SXM4-80GB"})),
            "gpu-hot ecc-uncorrected gpu-needs-reset"),
    made_up("power brake", own(works(), reasons("hw_slowdown", "hw_power_brake_slowdown")), "clocks-braked"),
    made_up("hardware slowdown without heat", two_cards(works(1), reasons("hw_slowdown", card=1)), "clocks-braked"),
    made_up("persistence mode off", own(put({"persistence_mode": "Disabled"})), "persistence-off"),
    made_up("MIG without instances", sample(A100_MIG, A100, whole, put({"mig_mode/current_mig": "Enabled"})),
            "mig-without-instances"),
    made_up("two VBIOS versions of one model", two_cards(put({"vbios_version": "90.04.38.00.03"}, 1)), "vbios-differs"),
)  # fmt: skip

SMI = (
    made_up("nvidia-smi hangs", fails(124), "nvidia-smi-silent", REPORT),
    made_up("nvidia-smi hangs and is killed", fails(137), "nvidia-smi-silent", REPORT),
    made_up("an error of nvidia-smi that nobody knows", fails(3, "A made-up error\n"), "nvidia-smi-failed", REPORT),
    made_up("power cable, as nvidia-smi says", fails(8, "Some devices are missing their power cables\n"), "power-cable",
            REPORT),
    made_up("power cable, as the kernel says", log(xid(54, 1, "Auxiliary power is not connected")), "power-cable"),
    made_up("no interrupts", fails(10, report=True), "gpu-interrupts"),
    made_up("infoROM corrupted, the report complete",
            fails(14, "WARNING: infoROM is corrupted at gpu 0000:3B:00.0\n", report=True), "inforom-corrupted"),
    made_up("infoROM corrupted, no report", fails(14, "WARNING: infoROM is corrupted at gpu 0000:3B:00.0\n"),
            "inforom-corrupted", REPORT),
    made_up("a card requires a reset", two_cards(blank(keep=NAMES, word="GPU requires reset", card=1)),
            "gpu-needs-reset"),
    made_up("a card cannot be read, another requires a reset and has no page to spare",
            sample("v100-470.182.03-unreadable", V100_PCIE),
            "gpu-needs-reset pages-retired-many page-retirement-pending"),
    made_up("a recovery action, four lanes, as R570 words it",
            sample("l40s-570.124.06", A10, put({"product_name": "NVIDIA A10"})), "gpu-needs-reset pcie-width"),
)  # fmt: skip

GONE = (
    made_up("off the bus, nvidia-smi ends with 15", together(fails(15, HANDLE), log(*FALL)), "gpu-lost", REPORT),
    made_up("off the bus, nvidia-smi hangs as well", together(fails(124), log(*FALL)), "gpu-lost",
            REPORT),
    made_up("off the bus, in rsyslog's file", together(fails(15, HANDLE), log(*FALL, journal=False)), "gpu-lost",
            REPORT),
    made_up("off the bus, no line of the kernel's left", fails(15, HANDLE), "gpu-lost", REPORT),
    made_up("one of two off the bus while the report was made", two_cards(blank(keep=NAMES, word=LOST, card=1)),
            "gpu-lost"),
    made_up("one of two off the bus, as R580 words it",
            sample("b200-580.65.06-one-lost", A100, put({"product_name": "NVIDIA A100-SXM4-80GB"})), "gpu-lost"),
    made_up("one of two off the bus and no longer listed",
            together(own(), on_bus(T4, T4), log(*((hours, words.replace("3b:00", "3c:00")) for hours, words in FALL))),
            "gpu-lost"),
)  # fmt: skip

CARDS = (*MEMORY, *HEALTH, *SMI, *GONE)
