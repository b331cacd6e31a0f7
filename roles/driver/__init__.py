"""The NVIDIA driver and its daemons, without anything for a display."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.resources import DebFile, File, PackagedPrograms, Resource, RestartedAfter, Service, SystemUser, When
from hostwright.roles import RoleContext, role
from hostwright.standard.roles.driver.section import DriverSection
from hostwright.standard.roles.driver.states.gpu_use import AllGpusPresent, GpuPresent, HasNvSwitch, reloading
from hostwright.standard.roles.driver.states.others import no_other_driver
from hostwright.standard.roles.driver.states.packages import NvidiaPackages, sources
from hostwright.standard.roles.driver.states.removal import DriverGone
from hostwright.standard.roles.driver.states.runfile import NvidiaRunfile, WithDriver

USER = "nvidia-persistenced"
PERSISTENCED = "nvidia-persistenced.service"
UNIT = f"/etc/systemd/system/{PERSISTENCED}"


@dataclass(frozen=True, slots=True)
class Driver:
    """Variables of the role ``driver``; version and files are the stack's."""

    force: bool = False  #: replace a driver that is in use, ending the display and the processes that use it
    flags: tuple[str, ...] = ()  #: further flags of the installer, such as --no-drm


@role(needs=["base"], short="drv")
def driver(v: Driver, ctx: RoleContext) -> Iterator[Resource]:
    """One version everywhere: libraries, module on disk, module in the kernel; kept awake; NVSwitches set up."""
    stack, wanted = ctx.stack, ctx.section(DriverSection)
    force = v.force or ctx.force
    yield GpuPresent()
    if ctx.gpus is not None:
        yield AllGpusPresent(ctx.gpus)
    yield from no_other_driver(ctx)
    yield File("/etc/modules-load.d/hostwright-nvidia.conf", ctx.render("driver/modules.conf.j2"))
    installed: NvidiaRunfile | NvidiaPackages
    if wanted.artifact:
        installer = stack.artifact(wanted.artifact)
        installed = NvidiaRunfile(installer, wanted.version, v.flags, force, allowed=v.force, module=wanted.module)
        yield installed
        yield from _own_daemon(ctx, installed)
    else:
        source = wanted.repository.list_file if wanted.repository else ""
        words = tuple(f"{name}={version}" for name, version in wanted.packages.items())
        installed = NvidiaPackages(words, wanted.version, source, force, v.force)
        yield DriverGone(force, v.force)
        yield from sources(wanted, stack)
        yield installed
        yield PackagedPrograms(tuple(wanted.packages))
        yield reloading(WithDriver(installed, Service(PERSISTENCED)))

    if fabric := wanted.fabric_manager:  # without it CUDA does not start on an HGX board (error 802)
        manager = "nvidia-fabricmanager.service"
        # Its restart ends jobs, but it runs only with a driver of its own version: that change already disturbs.
        yield When(HasNvSwitch(), DebFile(stack.artifact(fabric.artifact), fabric.package, fabric.version, manager))
        yield When(HasNvSwitch(), WithDriver(installed, Service(manager)))


def _own_daemon(ctx: RoleContext, installed: NvidiaRunfile) -> Iterator[Resource]:
    """The persistence daemon's account and unit, which a package brings with it."""
    service = ctx.render("driver/nvidia-persistenced.service.j2", user=USER)
    unit = File(UNIT, service, then=("systemctl daemon-reload",))
    yield SystemUser(USER, "NVIDIA persistence daemon")
    yield reloading(unit)
    yield reloading(WithDriver(installed, Service(PERSISTENCED)))
    # Its restart disturbs nobody: a GPU in use stays awake without it.
    yield WithDriver(installed, RestartedAfter(PERSISTENCED, (UNIT,), (unit,)))
