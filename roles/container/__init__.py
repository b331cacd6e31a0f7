"""The role for containers with GPUs: Docker and the NVIDIA container toolkit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from hostwright.resources import (
    Debs,
    Disturbing,
    JsonMerged,
    PackagedPrograms,
    Resource,
    RestartedAfter,
    Service,
    When,
    signed_repository,
)
from hostwright.roles import RoleContext, role
from hostwright.standard.roles.container.cdi import (
    REFRESH_PATH,
    CdiSpecification,
    GpusFlagWorks,
    NoRefresh,
    Refreshable,
    RuntimeMode,
)
from hostwright.standard.roles.container.engine import (
    DAEMON_JSON,
    PROGRAM,
    RESTARTS,
    VALIDATE,
    DockerEngine,
    FirewallRules,
    ProgramApart,
    daemon_settings,
    former_names_gone,
    links_at_boot,
)
from hostwright.standard.roles.container.engines import ONLY_CDI
from hostwright.standard.roles.container.running import DOCKER as DOCKER
from hostwright.standard.roles.container.running import DockerRuns
from hostwright.standard.roles.container.section import ContainerSection
from hostwright.standard.roles.driver.states.device_files import DeviceLinks
from hostwright.standard.roles.driver.states.gpu_use import reloading

REPLACES = "changes Docker's packages, which ends its containers"


@dataclass(frozen=True, slots=True)
class Container:
    """Variables of the role ``container``. Its packages, versions and repositories come from the stack."""

    default_runtime: bool = False  #: whether all containers get the nvidia runtime by default
    cgroup_driver: Literal["", "cgroupfs", "systemd"] = ""  #: Docker's cgroup driver; empty: Docker's default
    smoke_image: str = ""  #: image for the smoke test. If empty, the host builds an image from the host's C library


@role(needs=["base", "driver"])
def container(v: Container, ctx: RoleContext) -> Iterator[Resource]:
    """Docker that can give GPUs to containers. Settings in daemon.json that the role does not set are kept."""
    section = ctx.section(ContainerSection)
    docker, wanted = section.docker_ce, section.toolkit
    yield from former_names_gone(keep=wanted.repository.list_file)
    if docker and section.docker == "docker-ce":
        yield from signed_repository(docker.repository, ctx.stack)
    engine = DockerEngine(section.exact_docker_packages)
    exact = tuple(f"{name}={wanted.version}" for name in wanted.packages)
    toolkit = Debs(exact, source=wanted.repository.list_file)
    if wanted.mode in ONLY_CDI:
        yield GpusFlagWorks(wanted.mode)
    yield Disturbing(engine, REPLACES, DockerRuns(restarts=False))
    program = (PROGRAM,) if section.docker == "docker.io" else ()
    if program:
        yield When(ProgramApart(), Debs(program, leaf=True))
    yield from signed_repository(wanted.repository, ctx.stack)
    if not wanted.writes_cdi:
        yield NoRefresh()
    held = replace(toolkit, hold=True)
    yield reloading(held) if wanted.writes_cdi else held
    programs = PackagedPrograms((*section.docker_packages, *program, *wanted.packages))
    yield programs
    yield DeviceLinks()
    yield from links_at_boot(ctx.render("container/dev-char.service.j2"))
    if wanted.mode:
        yield RuntimeMode(wanted.mode)
    if wanted.writes_cdi:
        yield When(Refreshable(), reloading(Service(REFRESH_PATH)))
        yield reloading(CdiSpecification())
    settings = JsonMerged(
        DAEMON_JSON, daemon_settings(v.default_runtime, v.cgroup_driver, cdi=wanted.gives_cdi), check=VALIDATE
    )
    yield settings
    yield Service(DOCKER)
    installed = tuple(f"/var/lib/dpkg/info/{name}.list" for name in wanted.packages)
    restart = RestartedAfter(DOCKER, (DAEMON_JSON, *installed), (engine, toolkit, programs, settings))
    yield Disturbing(restart, RESTARTS, DockerRuns(restarts=True))
    yield FirewallRules(force=ctx.force)
