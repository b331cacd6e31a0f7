"""Docker's containers that a reboot ends, with or without a GPU. The role ``driver`` finds users of GPUs."""

from __future__ import annotations

from hostwright.roles import Occupancy
from hostwright.standard.roles.container.running import CONTAINERS, DockerRuns, ended_by_reboot, named_by_docker

_RESTARTED = DockerRuns(restarts=True)
OCCUPANCY = Occupancy(
    (CONTAINERS,),
    lambda _facts: (),
    ended_by_reboot,
    named_by_docker,
    # A restart of containerd.service also stops docker.service (BindsTo=).
    services=(("docker", _RESTARTED), ("dockerd", _RESTARTED), ("containerd", _RESTARTED)),
)
