"""Signs of an inconsistent driver: versions that differ, lost files, a second driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, ForPeople, Sign, Tangled
from hostwright.resources import DPKG, KERNEL_GONE, Absent, Probe, Refusal, jobs
from hostwright.roles import Pattern, sh_file
from hostwright.standard.roles.driver.failures.build import LOGGED, MISSING, why_unbuilt
from hostwright.standard.roles.driver.failures.loader_cache import CONF, LOADER, compat_first, preloaded
from hostwright.standard.roles.driver.failures.logs import LOG_PROBES, log_cause
from hostwright.standard.roles.driver.failures.state import (
    BOOTED,
    driver_of,
    foreign,
    installed_by,
    library_versions,
    matching,
    ours,
    wanted_version,
)
from hostwright.standard.roles.driver.failures.units import PERSISTENCED, UNITS
from hostwright.standard.roles.driver.nvsmi.report import NVIDIA_SMI
from hostwright.standard.roles.driver.section import DriverSection
from hostwright.standard.roles.driver.states.gpu_use import DISPLAY, display
from hostwright.standard.roles.driver.states.nouveau import NOUVEAU
from hostwright.standard.roles.driver.states.runfile import DriverState
from hostwright.standard.roles.driver.states.steps import INSTALLING

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

MARKER = "/usr/lib/nvidia/alternate-install-present"
MARKED = Absent(MARKER).probes()[0]  #: probe for the file that marks a driver from the distribution's packages
_CLIENT = Pattern(r"NVRM: API mismatch: .*version ([0-9]{2,4}(?:\.[0-9]{1,3}){1,2})")

_PROGRAMS = (
    "nvidia-smi",
    "nvidia-modprobe",
    "nvidia-persistenced",
    "nvidia-ctk",
    "modinfo",
    "lspci",
    "update-initramfs",
    "gcc",
    "cc",
    "ld",
    "make",
    "dkms",
    "modprobe",
    "insmod",
    "depmod",
    "ldconfig",
    "docker",
    "dockerd",
    "containerd",
    "runc",
    "nvidia-container-cli",
    "nvidia-container-runtime",
)
HIDDEN = Probe(sh_file(__file__, "hidden.sh", programs=_PROGRAMS))

STUB = r"libnvidia-ml\.so in GDK package is a stub"


def x_server(ctx: AuditContext) -> Iterator[str]:
    """The installer must run, but a display manager or an X server runs, and driver_force does not allow ending it."""
    installed = installed_by(ctx)
    for probe in installed.probes():
        ctx.require(probe)
    change = installed.plan(ctx.facts)
    if isinstance(change, Refusal) and change.rule == "display":
        yield from display(ctx.facts).split(", ")


def module_held(ctx: AuditContext) -> Iterator[str]:
    """The installer must run, and /sys/module/nvidia/holders has a module that is not the driver's."""
    installed = installed_by(ctx)
    for probe in installed.probes():
        ctx.require(probe)
    change = installed.plan(ctx.facts)
    if isinstance(change, Refusal) and change.rule == "module-held":
        yield from (f"/sys/module/nvidia/holders: {name}" for name in driver_of(ctx).holders)


def other_installer(ctx: AuditContext) -> Iterator[str]:
    """dpkg has packages of another NVIDIA driver: the distribution's, or NVIDIA's repositories'."""
    names = foreign(ctx)
    yield from (f"{name} {ctx.packages[name].version}" for name in names)


def marker_left(ctx: AuditContext) -> Iterator[str]:
    """/usr/lib/nvidia/alternate-install-present exists, and no package of a distribution's driver is installed."""
    if ctx.answer(MARKED).ok and not foreign(ctx) and ctx.section(DriverSection).artifact:
        yield f"{MARKER} is there"


def reboot_pending(ctx: AuditContext) -> Iterator[str]:
    """The libraries and the module on disk have the same version, and the loaded module has another version."""
    state = ours(ctx)
    if state is not None and state.loaded and _agree(state) and state.loaded != state.module:
        yield f"module {state.loaded} is loaded; on the disk are module and libraries of {state.module}"


def mixed(ctx: AuditContext) -> Iterator[str]:
    """The file that the loader opens for libcuda.so.1 or libnvidia-ml.so.1 does not have the version of the module on
    disk, or is missing.
    """
    state = ours(ctx)
    if state is None or state.lost or state.cut or _agree(state) or why_unbuilt(ctx) not in {"", MISSING}:
        return
    # Other rules report other libraries or modules that take precedence over the driver's.
    if state.shadows or any((*compat_first(ctx), *module_of_package(ctx))):
        return
    if state.module or not all(state.libraries):  # another rule reports that only the module is missing
        yield str(state)
        winning = (*state.winning(wanted_version(ctx)), *state.strays)
        yield from (f"{path} belongs to no package, and wins" for path in winning)
        yield from state.preferred


def another_library(ctx: AuditContext) -> Iterator[str]:
    """Programs load another libcuda.so.1 or libnvidia-ml.so.1 than the driver's: the loader's cache lists a package's
    library or a stub first, /etc/ld.so.preload names such a library, or nvidia-smi reports that it loaded a stub.
    """
    shadows = () if any(compat_first(ctx)) or foreign(ctx) else driver_of(ctx).shadows
    found = [*map(str, shadows), *preloaded(ctx)]
    stub = Pattern(STUB).search(ctx.facts[NVIDIA_SMI].text) if NVIDIA_SMI in ctx.facts and not found else None
    yield from found
    yield from [f"nvidia-smi prints: {stub[0]}"] if stub else []


def module_of_package(ctx: AuditContext) -> Iterator[str]:
    """modinfo finds a package's module of another version before the module that DKMS built."""
    state = ours(ctx)
    if state is not None and state.dkms and state.packaged:
        yield from (*state.packaged, *state.preferred)


def cut(ctx: AuditContext) -> Iterator[str]:
    """/var/lib/hostwright/driver.installing exists although no job runs, and no log has the reason for the
    interruption.
    """
    ctx.require(jobs.RUNNING)
    if jobs.running(ctx.facts) or not driver_of(ctx).cut or foreign(ctx):
        return
    if why_unbuilt(ctx) in {"", MISSING} and log_cause(ctx)[0] not in LOGGED:
        yield f"{INSTALLING} is there"


def files_lost(ctx: AuditContext) -> Iterator[str]:
    """A program or library of the driver is missing, or its size or time differs from the installer's record."""
    state = ours(ctx)
    if state is not None and not state.cut:
        yield from state.lost


def foreign_client(ctx: AuditContext) -> Iterator[str]:
    """Since the last load of the module, the kernel log has ``API mismatch`` for a program. Its driver libraries have
    another version than the host's, which all have the same version.
    """
    state = ours(ctx)
    if state is None or not _agree(state) or state.loaded != state.module:
        return
    for line in matching(ctx, _CLIENT.pattern):
        match = _CLIENT.search(line)
        if match and match[1] != state.loaded:
            yield line


def program_hidden(ctx: AuditContext) -> Iterator[str]:
    """/usr/local has a program of the driver, the compiler or the kernel tools that the system has as well."""
    rows = (line.split(" ") for line in ctx.text(HIDDEN).splitlines())
    yield from (f"{row[1]} is found before {row[2]}" for row in rows if len(row) == 3 and row[0] == "hides")


def persistenced_stopped(ctx: AuditContext) -> Iterator[str]:
    """The module is loaded, and nvidia-persistenced.service is neither active, failed nor starting."""
    state = ours(ctx)
    if state is None or state.loaded != wanted_version(ctx):
        return
    daemon = UNITS.unit(ctx, PERSISTENCED)
    if daemon.failed or daemon.active in {"active", "activating", "reloading"}:
        return
    yield f"{daemon}" if daemon.load == "loaded" else f"{PERSISTENCED}: {daemon.load}"


def _agree(state: DriverState) -> bool:
    return {state.module, *library_versions(state)} == {state.module} != {""}


MODULE_HELD_SIGN = Sign("driver", module_held, (DISPLAY, KERNEL_GONE, NOUVEAU))
X_SERVER_SIGN = Sign("driver", x_server, (DISPLAY, KERNEL_GONE, NOUVEAU))
OTHER_INSTALLER_SIGN = Sign("driver", other_installer, (DPKG,), provision=True)
VERSION_MISMATCH_SIGN = Sign("driver", reboot_pending, (DPKG,), provision=True)

_WHOLE: tuple[Probe, ...] = (DPKG, *LOG_PROBES)

INSTALL_RULES = (
    FailureRule(
        "driver-library-shadowed",
        r"CUDA_ERROR_STUB_LIBRARY|cudaErrorStubLibrary|CUDA driver is a stub library|\bstubs/lib(?:cuda|nvidia-ml)\.so|"
        + STUB,
        "programs load another libcuda.so.1 or libnvidia-ml.so.1 than the driver's, often CUDA's stub, which only "
        "serves to link programs and finds no card",
        "Remove its directory from the line that names it, in /etc/ld.so.conf.d, /etc/ld.so.preload or "
        "LD_LIBRARY_PATH, or remove the library, then run ldconfig. LD_DEBUG=libs PROGRAM prints the path of each "
        "library",
        "ldconfig(8), ld.so(8); CUDA driver API, CUDA_ERROR_STUB_LIBRARY",
        sign=Sign("driver", another_library, (DPKG, LOADER, CONF)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "module-of-package",
        "",
        "a package installed a driver module of another version, which is loaded instead of the one that DKMS built",
        "Remove the package that the evidence names, or the line of depmod.d that prefers its directory, then run"
        " depmod -a and provision again",
        "depmod.d(5), search and override; Frogging-Family/nvidia-all#394",
        sign=Sign("driver", module_of_package, (DPKG,)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "driver-versions-mixed",
        "",
        "the driver's libraries and its module on disk have different versions, or the loader does not find the "
        "libraries: two drivers were installed over each other, or a link was changed",
        "Provision again: the driver role installs libraries and module at one version",
        "NVIDIA's driver README, chapter on installed components; shine-cluster#50",
        sign=Sign("driver", mixed, (*_WHOLE, LOADER), provision=True),
        treatment=Tangled("the driver's files have several versions"),
    ),
    FailureRule(
        "driver-files-lost",
        "",
        "files of the driver were removed or changed, not by Hostwright",
        "Provision again: the driver role runs the installer",
        "nvidia-installer, option --sanity",
        sign=Sign("driver", files_lost, (DPKG,), provision=True),
    ),
    FailureRule(
        "driver-install-cut",
        "",
        "the driver's installer did not finish: it was killed, or the host went down",
        "Provision again: the driver role runs the installer from the beginning",
        "hostwright's own record",
        sign=Sign("driver", cut, _WHOLE, provision=True),
    ),
    FailureRule(
        "alternate-install-left",
        "",
        "a distribution's driver left a marker file; NVIDIA's installer aborts if it finds the file in a manual run",
        "Provision again: the driver role removes the file",
        "nvidia-installer misc.c",
        sign=Sign("driver", marker_left, (MARKED, DPKG), grave=False, provision=True),
    ),
    FailureRule(
        "foreign-driver-library",
        "",
        "a program uses its own copy of the driver's user-space libraries, in another version than the host's "
        "module; usually a container image with its own libcuda.so.1",
        "Find the program (docker ps; the time of the line), and remove libcuda and libnvidia-* from its image: the "
        "container toolkit mounts the host's",
        "nvidia.ko, rm_perform_version_check; NVIDIA/nvidia-docker#1393",
        sign=Sign("driver", foreign_client, (BOOTED, DPKG), grave=False),
    ),
    FailureRule(
        "program-hidden",
        "",
        "a program in /usr/local is found before the system's program of the same name: shells, builds and "
        "Hostwright run that one, whatever its release",
        "Find out where it came from (ls -l, its --version); if nobody needs it, remove or rename it",
        "bash(1), PATH",
        sign=Sign("driver", program_hidden, (HIDDEN,), grave=False),
    ),
    FailureRule(
        "persistenced-stopped",
        "",
        "nvidia-persistenced does not run: the driver releases a GPU when its last program ends, and programs"
        " start slowly",
        "Provision again: the driver role enables and starts it",
        "NVIDIA driver persistence",
        sign=Sign("driver", persistenced_stopped, (UNITS.states, DPKG), grave=False, provision=True),
    ),
)
