"""The stack section of Docker and NVIDIA's container toolkit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from hostwright.roles import AptRepository, DebianVersion, Name, Section, Share, Stack, StackPart, taken


class DockerCe(StackPart):
    """Docker's own packages, used when ``container.docker`` says ``docker-ce``."""

    packages: tuple[Name, ...]
    repository: AptRepository


class ContainerToolkit(StackPart):
    """NVIDIA's container toolkit: all packages at one version."""

    version: DebianVersion
    packages: tuple[Name, ...]
    repository: AptRepository


class ContainerSection(Section):
    """Docker and NVIDIA's container toolkit."""

    vendor: ClassVar = "NVIDIA"

    docker: Literal["docker.io", "docker-ce"] = "docker.io"
    docker_ce: DockerCe | None = None
    toolkit: ContainerToolkit

    @property
    def docker_packages(self) -> tuple[str, ...]:
        """The packages that bring Docker."""
        return self.docker_ce.packages if self.docker == "docker-ce" and self.docker_ce else (self.docker,)

    @property
    def spare(self) -> tuple[str, ...]:
        """Docker's own repository, if the distribution's Docker is wanted."""
        return () if self.docker == "docker-ce" else ("docker_ce",)

    def versions(self) -> Mapping[str, str]:
        """The version of the NVIDIA container toolkit."""
        return {"container-toolkit": self.toolkit.version}

    def shares(self, _stack: Stack, /) -> tuple[Share, ...]:
        """The packages' share, with what apt fetches; images come on top and cannot be foreseen."""
        return taken("Docker", "/lib/systemd/system/docker.service", {"/usr": 2, "/var/cache/apt": 1})
