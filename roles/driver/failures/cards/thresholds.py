"""The limits above which a card's counters are abnormal, each with its source."""

from __future__ import annotations

#: rows remapped for uncorrectable errors: azurehpc-health-checks, azure_gpu_ecc.nhc, fails above (fault code NHC2007)
REMAPPED_ROWS = 512

#: corrected ECC errors, since the driver was loaded or in the card's life. SRAM and DRAM: azurehpc-health-checks, the
#: arguments of check_gpu_ecc in its configurations (20000000 10000); the sum, where a card does not tell them apart:
#: facebookresearch/gcm, check-nvidia-smi
SRAM_CORRECTED = 10_000
DRAM_CORRECTED = 20_000_000
CORRECTED = 50_000_000

#: retired memory pages: facebookresearch/gcm, check-nvidia-smi gpu_retired_pages. At 62 azure_gpu_ecc.nhc calls the
#: card's table full
RETIRED_PAGES = 10

#: clocks event reasons (NVML, nvmlClocksEventReasons) that heat causes. Idle, application clocks, the software's power
#: cap and sync boost are how a healthy card runs
HOT = ("hw_thermal_slowdown", "sw_thermal_slowdown")
#: those caused by the power supply, or for reasons that NVML does not tell: they at least halve the clocks
BRAKED = ("hw_power_brake_slowdown", "hw_slowdown")
