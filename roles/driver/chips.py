"""PCI device IDs of NVIDIA's GPUs, with chip, architecture and compute capability.

The ranges come from the PCI ID database (pci-ids.ucw.cz, file pci.ids), where each chip has its own block of ids.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cache

NVIDIA = 0x10DE  #: PCI vendor id of NVIDIA


class Architecture(IntEnum):
    """NVIDIA's GPU architectures, from the oldest to the newest."""

    KEPLER = 1
    MAXWELL = 2
    PASCAL = 3
    VOLTA = 4
    TURING = 5
    AMPERE = 6
    ADA = 7
    HOPPER = 8
    BLACKWELL = 9

    def __str__(self) -> str:
        return self.name.capitalize()


@dataclass(frozen=True, slots=True)
class Chip:
    """Block of PCI device IDs of one chip, from ``first`` to ``last``."""

    first: int
    last: int
    name: str
    architecture: Architecture
    capability: tuple[int, int]  #: compute capability of the chip, as major and minor number


_KEPLER, _MAXWELL, _PASCAL, _VOLTA, _TURING, _AMPERE, _ADA, _HOPPER, _BLACKWELL = Architecture

CHIPS = (
    Chip(0x0FC0, 0x0FFF, "GK107", _KEPLER, (3, 0)),
    Chip(0x1001, 0x102C, "GK110", _KEPLER, (3, 5)),
    Chip(0x102D, 0x102D, "GK210", _KEPLER, (3, 7)),
    Chip(0x102E, 0x103F, "GK110", _KEPLER, (3, 5)),
    Chip(0x1180, 0x11BF, "GK104", _KEPLER, (3, 0)),
    Chip(0x11C0, 0x11FF, "GK106", _KEPLER, (3, 0)),
    Chip(0x1280, 0x12BA, "GK208", _KEPLER, (3, 5)),
    Chip(0x1340, 0x13BF, "GM107", _MAXWELL, (5, 0)),
    Chip(0x13C0, 0x13FF, "GM204", _MAXWELL, (5, 2)),
    Chip(0x1401, 0x143F, "GM206", _MAXWELL, (5, 2)),
    Chip(0x15F0, 0x15FF, "GP100", _PASCAL, (6, 0)),
    Chip(0x1617, 0x1667, "GM204", _MAXWELL, (5, 2)),
    Chip(0x174D, 0x179C, "GM107", _MAXWELL, (5, 0)),
    Chip(0x17C2, 0x17FF, "GM200", _MAXWELL, (5, 2)),
    Chip(0x1B00, 0x1B7F, "GP102", _PASCAL, (6, 1)),
    Chip(0x1B80, 0x1BFF, "GP104", _PASCAL, (6, 1)),
    Chip(0x1C00, 0x1C7F, "GP106", _PASCAL, (6, 1)),
    Chip(0x1C80, 0x1CFF, "GP107", _PASCAL, (6, 1)),
    Chip(0x1D01, 0x1D56, "GP108", _PASCAL, (6, 1)),
    Chip(0x1D80, 0x1DFF, "GV100", _VOLTA, (7, 0)),
    Chip(0x1E02, 0x1E7F, "TU102", _TURING, (7, 5)),
    Chip(0x1E80, 0x1EFF, "TU104", _TURING, (7, 5)),
    Chip(0x1F00, 0x1F7F, "TU106", _TURING, (7, 5)),
    Chip(0x1F80, 0x1FFF, "TU117", _TURING, (7, 5)),
    Chip(0x2080, 0x20FF, "GA100", _AMPERE, (8, 0)),
    Chip(0x2180, 0x21FF, "TU116", _TURING, (7, 5)),
    Chip(0x2200, 0x227F, "GA102", _AMPERE, (8, 6)),
    Chip(0x2302, 0x237F, "GH100", _HOPPER, (9, 0)),
    Chip(0x2414, 0x247F, "GA103", _AMPERE, (8, 6)),
    Chip(0x2480, 0x24FF, "GA104", _AMPERE, (8, 6)),
    Chip(0x2501, 0x257F, "GA106", _AMPERE, (8, 6)),
    Chip(0x2580, 0x25FF, "GA107", _AMPERE, (8, 6)),
    Chip(0x2680, 0x26FF, "AD102", _ADA, (8, 9)),
    Chip(0x2700, 0x277F, "AD103", _ADA, (8, 9)),
    Chip(0x2780, 0x27FF, "AD104", _ADA, (8, 9)),
    Chip(0x2800, 0x287F, "AD106", _ADA, (8, 9)),
    Chip(0x2880, 0x28FF, "AD107", _ADA, (8, 9)),
    Chip(0x2900, 0x29FF, "GB100", _BLACKWELL, (10, 0)),
    Chip(0x2B80, 0x2BFF, "GB202", _BLACKWELL, (12, 0)),
    Chip(0x2C00, 0x2C7F, "GB203", _BLACKWELL, (12, 0)),
    Chip(0x2D00, 0x2DFF, "GB206", _BLACKWELL, (12, 0)),
    # This chip of the DGX Spark is from the list in the README of driver 610.57.04 for aarch64.
    Chip(0x2E12, 0x2E12, "GB10", _BLACKWELL, (12, 1)),
    Chip(0x2F00, 0x2F7F, "GB205", _BLACKWELL, (12, 0)),
    Chip(0x3180, 0x31FF, "GB110", _BLACKWELL, (10, 3)),
)


#: names of chips on boards with NVLink 5 switches behind ConnectX bridges
NVLINK5 = frozenset({"GB100", "GB110"})
#: PCI ids of GPUs in GB200 and GB300 racks (list in the README of open-gpu-kernel-modules)
RACK_CARDS = frozenset({0x2941, 0x31C2, 0x31C3})


def chip(device_id: int) -> Chip | None:
    """Return the chip with the PCI device ID ``device_id``; ``None`` if unknown.

    >>> chip(0x1EB8).name  # Tesla T4
    'TU104'
    """
    return next((row for row in CHIPS if row.first <= device_id <= row.last), None)


@cache
def chips(gpus: tuple[tuple[int, int], ...]) -> tuple[Chip, ...]:
    """Return the different chips among the display controllers ``gpus``, each a pair of PCI IDs (vendor, device)."""
    known = (chip(device) for vendor, device in gpus if vendor == NVIDIA)
    return tuple(dict.fromkeys(chip for chip in known if chip is not None))
