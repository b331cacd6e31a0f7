"""Compatibility rules for Docker and NVIDIA's container toolkit."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.roles import Misfit, disk_is_enough
from hostwright.standard.roles.container.engines import (
    DOCKER_OF,
    GPUS_BY_CDI,
    GPUS_SOURCE,
    dotted,
    gpus_flag_sentence,
    loses_gpus_flag,
)
from hostwright.standard.roles.container.section import CDI_SINCE, ContainerSection


def repository_is_said(container_section: ContainerSection) -> Misfit | None:
    """The stack names the repository of Docker's own packages."""
    if container_section.docker != "docker-ce" or container_section.docker_ce is not None:
        return None
    return Misfit(
        "container-docker",
        "container.docker is docker-ce, but container.docker_ce, which sets its packages and repository, is missing",
        "the stack",
        "docker: docker.io, or a docker_ce entry with packages and repository",
    )


def versions_are_of_its_packages(container_section: ContainerSection) -> Iterator[Misfit]:
    """Exact versions belong to packages that the stack installs for Docker."""
    packages = container_section.docker_packages
    for name in container_section.docker_versions:
        if name not in packages:
            sentence = (
                f"container.docker_versions names the package {name}, but Docker's packages are {', '.join(packages)}"
            )
            yield Misfit("container-docker-versions", sentence, "the stack", f"versions of {', '.join(packages)}")


def mode_is_of_the_toolkit(container_section: ContainerSection) -> Misfit | None:
    """The container toolkit supports the mode."""
    toolkit = container_section.toolkit
    if toolkit.mode != "jit-cdi" or toolkit.writes_cdi:
        return None
    since = dotted(CDI_SINCE)
    return Misfit(
        "container-mode",
        f"the container toolkit {toolkit.version} does not support the mode jit-cdi, which needs {since} or newer",
        "release notes of the container toolkit 1.18.0",
        f"toolkit: {{version: 1.20.0-1}}, or mode: auto (before {since} equal to legacy)",
    )


def gpus_flag_works(container_section: ContainerSection, distribution: str, version: str) -> Misfit | None:
    """The Docker of the distribution or of the stack can give GPUs to containers in the toolkit's mode."""
    mode = container_section.toolkit.mode
    said = container_section.docker_versions.get(container_section.docker_packages[0], "")
    own = DOCKER_OF.get((distribution, version), "") if container_section.docker == "docker.io" else ""
    docker = said or own
    if mode is None or not loses_gpus_flag(mode, docker):
        return None
    nearest = f"mode: auto, or Docker {dotted(GPUS_BY_CDI)} or newer"
    return Misfit("container-cdi-engine", gpus_flag_sentence(mode, docker), GPUS_SOURCE, nearest)


RULES = (
    disk_is_enough,
    repository_is_said,
    versions_are_of_its_packages,
    mode_is_of_the_toolkit,
    gpus_flag_works,
)
