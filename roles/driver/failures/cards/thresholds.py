"""Limits above which a card's counters are abnormal, each with its source."""

from __future__ import annotations

#: rows remapped for uncorrectable errors: azurehpc-health-checks, azure_gpu_ecc.nhc, fails a node with more (fault code
#: NHC2007)
REMAPPED_ROWS = 512

#: Corrected ECC errors, since the driver was loaded or in the card's life. SRAM and DRAM: azurehpc-health-checks, the
#: arguments of check_gpu_ecc in its configurations (20000000 10000). The sum, for cards with a single counter:
#: facebookresearch/gcm, check-nvidia-smi.
SRAM_CORRECTED = 10_000
DRAM_CORRECTED = 20_000_000
CORRECTED = 50_000_000

#: Retired memory pages: facebookresearch/gcm, check-nvidia-smi gpu_retired_pages. At 62, azure_gpu_ecc.nhc reports the
#: card's table as full.
RETIRED_PAGES = 10

#: Clocks event reasons (NVML, nvmlClocksEventReasons) caused by heat. Idle, application clocks, the software's power
#: cap and sync boost are normal on a healthy card.
HOT = ("hw_thermal_slowdown", "sw_thermal_slowdown")
#: Reasons caused by the power supply, or not specified by NVML: they at least halve the clocks.
BRAKED = ("hw_power_brake_slowdown", "hw_slowdown")
