"""Whom a reboot ends: Docker's containers, whether they have a GPU (which the driver's role knows) or not."""

from __future__ import annotations

from hostwright.roles import Occupancy
from hostwright.standard.roles.container.running import CONTAINERS, ended_by_reboot, named_by_docker

OCCUPANCY = Occupancy((CONTAINERS,), lambda _facts: (), ended_by_reboot, named_by_docker)
