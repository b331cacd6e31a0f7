"""The NVIDIA driver and its daemons, without anything for a display."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.resources import DebFile, File, Resource, RestartedAfter, Service, SystemUser, When
from hostwright.roles import RoleContext, role
from hostwright.standard.roles.driver.section import DriverSection
from hostwright.standard.roles.driver.states.gpu_use import AllGpusPresent, GpuPresent, HasNvSwitch, reloading
from hostwright.standard.roles.driver.states.others import no_other_driver
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
    installer = stack.artifact(wanted.artifact)
    force = v.force or ctx.force
    runfile = NvidiaRunfile(installer, wanted.version, v.flags, force, allowed=v.force, module=wanted.module)
    yield GpuPresent()
    if ctx.gpus is not None:
        yield AllGpusPresent(ctx.gpus)
    yield from no_other_driver(ctx)
    yield File("/etc/modules-load.d/hostwright-nvidia.conf", ctx.render("driver/modules.conf.j2"))
    yield runfile

    service = ctx.render("driver/nvidia-persistenced.service.j2", user=USER)
    unit = File(UNIT, service, then=("systemctl daemon-reload",))
    yield SystemUser(USER, "NVIDIA persistence daemon")
    yield reloading(unit)
    yield reloading(WithDriver(runfile, Service(PERSISTENCED)))
    # Its restart disturbs nobody: a GPU in use stays awake without it.
    yield WithDriver(runfile, RestartedAfter(PERSISTENCED, (UNIT,), (unit,)))

    if fabric := wanted.fabric_manager:  # without it CUDA does not start on an HGX board (error 802)
        manager = "nvidia-fabricmanager.service"
        # Its restart ends jobs, but it runs only with a driver of its own version: that change already disturbs.
        yield When(HasNvSwitch(), DebFile(stack.artifact(fabric.artifact), fabric.package, fabric.version, manager))
        yield When(HasNvSwitch(), WithDriver(runfile, Service(manager)))
