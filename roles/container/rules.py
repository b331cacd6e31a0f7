"""Compatibility rules for Docker."""

from __future__ import annotations

from hostwright.roles import Misfit, disk_is_enough
from hostwright.standard.roles.container.section import ContainerSection


def repository_is_said(container_section: ContainerSection) -> Misfit | None:
    """Docker's own packages come from a repository that the stack names."""
    if container_section.docker != "docker-ce" or container_section.docker_ce is not None:
        return None
    return Misfit(
        "container-docker",
        "container.docker says docker-ce, and container.docker_ce does not say from which repository",
        "the stack",
        "docker: docker.io, or a docker_ce entry with packages and repository",
    )


RULES = (disk_is_enough, repository_is_said)
