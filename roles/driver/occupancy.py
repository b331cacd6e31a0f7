"""Who uses NVIDIA's cards: processes that hold a device file open, and containers that have them."""

from __future__ import annotations

from hostwright.roles import Occupancy
from hostwright.standard.roles.driver.states.gpu_use import BUSY_PROBES, users

OCCUPANCY = Occupancy(BUSY_PROBES, users)
