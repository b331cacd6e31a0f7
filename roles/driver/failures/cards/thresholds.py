"""Limits above which a card's counters are abnormal, each with the source of the limit."""

from __future__ import annotations

#: Maximum number of rows remapped for uncorrectable errors. With more, azurehpc-health-checks, azure_gpu_ecc.nhc, fails
#: a node (fault code NHC2007).
REMAPPED_ROWS = 512

#: Maximum numbers of corrected ECC errors since the driver was loaded, or in the card's life: in SRAM, in DRAM, and in
#: both for cards with a single counter. The first two are from azurehpc-health-checks, the arguments of check_gpu_ecc
#: in its configurations (20000000 10000), the third from facebookresearch/gcm, check-nvidia-smi.
SRAM_CORRECTED = 10_000
DRAM_CORRECTED = 20_000_000
CORRECTED = 50_000_000

#: Maximum number of retired memory pages, from facebookresearch/gcm, check-nvidia-smi gpu_retired_pages. At 62,
#: azure_gpu_ecc.nhc reports the card's table as full.
RETIRED_PAGES = 10

#: Reasons for lower clocks (NVML, nvmlClocksEventReasons) that mean heat. The reasons idle, application clocks, the
#: software's power cap and sync boost are normal on a healthy card.
HOT = ("hw_thermal_slowdown", "sw_thermal_slowdown")
#: Reasons for lower clocks that mean the power supply, or a cause that NVML does not specify. They at least halve the
#: clocks.
BRAKED = ("hw_power_brake_slowdown", "hw_slowdown")
