"""Stack section for Docker and NVIDIA's container toolkit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from hostwright.roles import AptRepository, DebianVersion, Name, Section, Share, Stack, StackPart, taken
from hostwright.standard.roles.container.engines import ONLY_CDI, numbers

#: first toolkit release with JIT-CDI and the units nvidia-cdi-refresh (release notes)
CDI_SINCE = (1, 18)

Mode = Literal["auto", "legacy", "jit-cdi", "cdi"]


class DockerCe(StackPart):
    """Packages of Docker's own repository, for ``container.docker: docker-ce`` in a stack."""

    packages: tuple[Name, ...]
    repository: AptRepository


class ContainerToolkit(StackPart):
    """NVIDIA's container toolkit, with one version for all packages.

    ``mode`` is ``nvidia-container-runtime.mode`` in config.toml, by which ``--runtime nvidia`` gives GPUs to
    containers. Without ``mode``, config.toml is not changed.
    """

    version: DebianVersion
    packages: tuple[Name, ...]
    repository: AptRepository
    mode: Mode | None = None

    @property
    def writes_cdi(self) -> bool:
        """Whether the toolkit has systemd units that write a CDI specification of the host's GPUs."""
        return numbers(self.version) >= CDI_SINCE

    @property
    def gives_cdi(self) -> bool:
        """Whether Docker offers the devices of the CDI specification (``nvidia.com/gpu=all``)."""
        return self.writes_cdi and self.mode in {"auto", *ONLY_CDI}


class ContainerSection(Section):
    """Stack section ``container`` for Docker and NVIDIA's container toolkit."""

    vendor: ClassVar = "NVIDIA"

    docker: Literal["docker.io", "docker-ce"] = "docker.io"
    docker_versions: Mapping[Name, DebianVersion] = {}  #: package of Docker → exact version, which apt then holds
    docker_ce: DockerCe | None = None
    toolkit: ContainerToolkit

    @property
    def docker_packages(self) -> tuple[str, ...]:
        return self.docker_ce.packages if self.docker == "docker-ce" and self.docker_ce else (self.docker,)

    @property
    def exact_docker_packages(self) -> tuple[str, ...]:
        """Names of Docker's packages, as ``name=version`` if the stack sets a version."""
        exact = self.docker_versions
        return tuple(f"{name}={exact[name]}" if name in exact else name for name in self.docker_packages)

    @property
    def spare(self) -> tuple[str, ...]:
        """Unused entries of the section: ``docker_ce`` if the stack uses the distribution's Docker."""
        return () if self.docker == "docker-ce" else ("docker_ce",)

    def versions(self) -> Mapping[str, str]:
        """Return the versions of the NVIDIA container toolkit, and of Docker if the stack sets Docker's version."""
        docker = self.docker_versions.get(self.docker_packages[0])
        return {"container-toolkit": self.toolkit.version, **({"docker": docker} if docker else {})}

    def shares(self, _stack: Stack, /) -> tuple[Share, ...]:
        """Return the disk space for packages and apt's downloads, without images."""
        return taken("Docker", "/lib/systemd/system/docker.service", {"/usr": 2, "/var/cache/apt": 1})
