"""Limits above which the error counters of a card are abnormal, each with its source."""

from __future__ import annotations

#: maximum number of memory rows remapped for uncorrectable errors (azurehpc-health-checks, azure_gpu_ecc.nhc)
REMAPPED_ROWS = 512

#: maximum numbers of corrected ECC errors in SRAM, in DRAM (both: azurehpc-health-checks, check_gpu_ecc), and in total
#: for cards with a single counter (facebookresearch/gcm, check-nvidia-smi)
SRAM_CORRECTED = 10_000
DRAM_CORRECTED = 20_000_000
CORRECTED = 50_000_000

#: maximum number of retired memory pages (facebookresearch/gcm, check-nvidia-smi gpu_retired_pages)
RETIRED_PAGES = 10

#: reasons for lower clocks that indicate heat (NVML, nvmlClocksEventReasons)
HOT = ("hw_thermal_slowdown", "sw_thermal_slowdown")
#: reasons for lower clocks that indicate a power supply problem or an unspecified hardware cause
BRAKED = ("hw_power_brake_slowdown", "hw_slowdown")
