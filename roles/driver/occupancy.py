"""Users of a host's NVIDIA GPUs: processes with an open GPU device file, and containers with access to GPUs."""

from __future__ import annotations

from hostwright.roles import Occupancy
from hostwright.standard.roles.driver.states.gpu_use import BUSY_PROBES, users

OCCUPANCY = Occupancy(BUSY_PROBES, users)
