"""Role ``driver``: the NVIDIA driver and its daemons, without display components."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.resources import File, PackagedPrograms, Resource, RestartedAfter, Service, SystemUser
from hostwright.roles import RoleContext, role
from hostwright.standard.roles.driver.section import DriverSection
from hostwright.standard.roles.driver.states.autobuild import AutoBuild
from hostwright.standard.roles.driver.states.device_files import DeviceFiles
from hostwright.standard.roles.driver.states.fabric import before_the_driver, fabric_states
from hostwright.standard.roles.driver.states.gpu_use import AllGpusPresent, GpuPresent, reloading
from hostwright.standard.roles.driver.states.others import no_other_driver
from hostwright.standard.roles.driver.states.packages import NvidiaPackages, sources
from hostwright.standard.roles.driver.states.removal import DriverGone
from hostwright.standard.roles.driver.states.runfile import NvidiaRunfile, WithDriver

USER = "nvidia-persistenced"
PERSISTENCED = "nvidia-persistenced.service"
UNIT = f"/etc/systemd/system/{PERSISTENCED}"


@dataclass(frozen=True, slots=True)
class Driver:
    """Inventory variables of the role ``driver``. The driver's version and files come from the stack."""

    #: true: replace a driver that is in use, and end the display and the processes that use the driver
    force: bool = False
    flags: tuple[str, ...] = ()  #: additional options for NVIDIA's installer, such as --no-drm
    #: addresses of all nodes of the rack, for IMEX; empty: the role does not write IMEX's configuration file
    imex_nodes: tuple[str, ...] = ()


@role(needs=["base"], short="drv")
def driver(v: Driver, ctx: RoleContext) -> Iterator[Resource]:
    """One driver version in libraries, module on disk and kernel; persistence daemon; GPU switches configured."""
    stack, wanted = ctx.stack, ctx.section(DriverSection)
    force = v.force or ctx.force
    yield GpuPresent()
    if ctx.gpus is not None:
        yield AllGpusPresent(ctx.gpus)
    # the sources are first, so that an expired key stops the role before any change to the driver
    yield from sources(wanted, stack)
    yield from no_other_driver(ctx)
    yield File("/etc/modules-load.d/hostwright-nvidia.conf", ctx.render("driver/modules.conf.j2"))
    yield from before_the_driver(wanted)
    installed: NvidiaRunfile | NvidiaPackages
    if wanted.artifact:
        installer = stack.artifact(wanted.artifact)
        installed = NvidiaRunfile(installer, wanted.version, v.flags, force, allowed=v.force, module=wanted.module)
        yield installed
        yield from _own_daemon(ctx, installed)
    else:
        source = wanted.repository.list_file if wanted.repository else ""
        names = wanted.precompiled_names
        installed = NvidiaPackages(wanted.words, wanted.version, source, force, v.force, precompiled=names)
        yield DriverGone(force, v.force)
        yield installed
        yield PackagedPrograms(tuple(wanted.packages))
        yield reloading(WithDriver(installed, Service(PERSISTENCED)))
    yield AutoBuild(wanted.version)
    yield WithDriver(installed, DeviceFiles())
    yield from fabric_states(ctx, wanted, v.imex_nodes, installed)


def _own_daemon(ctx: RoleContext, installed: NvidiaRunfile) -> Iterator[Resource]:
    """Set up account, unit and service of the persistence daemon, because NVIDIA's ``.run`` installer does not."""
    service = ctx.render("driver/nvidia-persistenced.service.j2", user=USER)
    unit = File(UNIT, service, then=("systemctl daemon-reload",))
    yield SystemUser(USER, "NVIDIA persistence daemon")
    yield reloading(unit)
    yield reloading(WithDriver(installed, Service(PERSISTENCED)))
    # a GPU in use stays initialised while the daemon restarts
    yield WithDriver(installed, RestartedAfter(PERSISTENCED, (UNIT,), (unit,)))
