"""Users of NVIDIA's GPUs: processes that have a GPU's device file open, and containers with access to these files."""

from __future__ import annotations

from hostwright.roles import Occupancy
from hostwright.standard.roles.driver.states.gpu_use import BUSY_PROBES, users

OCCUPANCY = Occupancy(BUSY_PROBES, users)
