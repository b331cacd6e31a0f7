"""Whom a reboot ends: Docker's containers, whether they have a GPU (which the driver's role knows) or not."""

from __future__ import annotations

from hostwright.roles import Occupancy
from hostwright.standard.roles.container.running import CONTAINERS, DockerRuns, ended_by_reboot, named_by_docker

_RESTARTED = DockerRuns(restarts=True)
OCCUPANCY = Occupancy(
    (CONTAINERS,),
    lambda _facts: (),
    ended_by_reboot,
    named_by_docker,
    # Docker's own unit stops with containerd's (BindsTo=)
    services=(("docker", _RESTARTED), ("dockerd", _RESTARTED), ("containerd", _RESTARTED)),
)
