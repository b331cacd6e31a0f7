"""Facts that several failure signs of the driver share: DKMS's tree, missing builds, incompatibilities, kernel
messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from hostwright.failures import AuditContext, Unread, once, wanted
from hostwright.resources import DPKG, HOST_PROBES, UNAME, Facts, Probe, read_host
from hostwright.roles import Misfit, Pattern, RoleRules, Same, Stack, check_host, sh_file
from hostwright.standard.roles.driver.gpus import kernel_log
from hostwright.standard.roles.driver.section import DriverSection
from hostwright.standard.roles.driver.states.packages import NvidiaPackages
from hostwright.standard.roles.driver.states.runfile import DriverState, NvidiaRunfile, driver_packages
from hostwright.standard.roles.driver.xids.events import loaded_at
from hostwright.standard.roles.driver.xids.kernellog import KernelLine

#: probe that prints added versions, builds and failed builds of modules in DKMS's tree (format: dkms_tree.sh)
DKMS_TREE = Probe(sh_file(__file__, "dkms_tree.sh"), root=True)

#: probe that prints the time of the last boot in seconds since 1970
BOOTED = Probe("sed -n 's/^btime //p' /proc/stat")
#: maximum time by which a log line may precede the computed boot time. A change of the clock moves the computed time.
BOOT_SLACK = timedelta(seconds=30)

_TREE = Pattern(r"tree ([\w.+~-]{1,60})")
_BUILT = Pattern(r"built ([\w.+~-]{1,60}) (\S+)")
_LOG = Pattern(r"log ([\w.+~-]{1,60}) .*for kernel (\S+) .*")
_BROKEN = Pattern(r"broken ([\w.+~-]{1,60}/[\w.+~-]{1,60})")
_OTHER = Pattern(r"other ([\w.+~-]{1,60}/[\w.+~-]{1,60}) .*for kernel (\S+) .*")
_UNLISTED = Pattern(r"unlisted (/lib/modules/\S{1,300})")
_ERROR = Pattern(r"error ([\w.+~-]{1,60}) (.*)")


@dataclass(frozen=True, slots=True)
class DkmsTree:
    """State of nvidia's kernel module in DKMS's tree."""

    versions: tuple[str, ...]
    built: frozenset[tuple[str, str]]
    failed: frozenset[tuple[str, str]]  #: for each failed build: version of nvidia's module, and kernel
    errors: tuple[tuple[str, str], ...]  #: for each failed build: version of nvidia's module, and compiler messages
    #: ``MODULE/VERSION`` of each module whose source is missing
    broken: tuple[str, ...] = ()
    #: for each failed build of another module: ``MODULE/VERSION``, and kernel
    others: tuple[tuple[str, str], ...] = ()
    hindered: tuple[str, ...] = ()  #: texts about obstacles to a build of nvidia's module for the next kernel
    unlisted: tuple[str, ...] = ()  #: files of nvidia's module that are missing in depmod's index


@once
def driver_of(ctx: AuditContext) -> DriverState:
    """Return the state of the host's driver. Raises ``Unread`` if the probe was not answered."""
    return DriverState.read(ctx.text(installed_by(ctx).state_probe))


def installed_by(ctx: AuditContext) -> NvidiaRunfile | NvidiaPackages:
    """Return the resource that installs the stack's driver. Raises ``Unread`` if no resource does."""
    if ctx.section(DriverSection).packages:
        return wanted(ctx, "driver", NvidiaPackages)
    return wanted(ctx, "driver", NvidiaRunfile)


def dkms_tree(ctx: AuditContext) -> DkmsTree:
    """Return the state of nvidia's module in DKMS. Raises ``Unread`` if ``DKMS_TREE`` was not answered."""
    return read_tree(ctx.text(DKMS_TREE))


def read_tree(text: str) -> DkmsTree:
    """Parse the output of ``DKMS_TREE``."""
    lines = text.splitlines()
    return DkmsTree(
        tuple(match[1] for line in lines if (match := _TREE.fullmatch(line))),
        frozenset((match[1], match[2]) for line in lines if (match := _BUILT.fullmatch(line))),
        frozenset((match[1], match[2]) for line in lines if (match := _LOG.fullmatch(line))),
        tuple((match[1], match[2].strip()) for line in lines if (match := _ERROR.fullmatch(line))),
        tuple(match[1] for line in lines if (match := _BROKEN.fullmatch(line))),
        tuple((match[1], match[2]) for line in lines if (match := _OTHER.fullmatch(line))),
        tuple(line.removeprefix("next ").strip() for line in lines if line.startswith("next ")),
        tuple(match[1] for line in lines if (match := _UNLISTED.fullmatch(line))),
    )


def wanted_version(ctx: AuditContext) -> str:
    """Return the driver version that the stack requires."""
    return ctx.section(DriverSection).version


def running_kernel(ctx: AuditContext) -> str:
    """Return the running kernel's release. Raises ``Unread`` if ``uname -r`` did not print a kernel version."""
    kernel = ctx.text(UNAME).strip().partition(" ")[0]
    if not Pattern(r"[0-9][\w.+~-]{0,99}").fullmatch(kernel):
        raise Unread("the command `uname -r` printed no kernel version")
    return kernel


def foreign(ctx: AuditContext) -> tuple[str, ...]:
    """Return installed packages of another driver. They explain any problem with the stack's driver.

    Raises ``Unread`` if dpkg's list was not read.
    """
    ctx.require(DPKG)
    return driver_packages(ctx.facts, ctx.section(DriverSection).kept)


def ours(ctx: AuditContext) -> DriverState | None:
    """Return the driver's state; ``None`` without a driver, or with packages of another driver.

    Raises ``Unread`` if a probe was not answered.
    """
    state = driver_of(ctx)
    return None if state.absent or foreign(ctx) else state


def library_versions(state: DriverState) -> tuple[str, ...]:
    """Return the versions in the file names of the driver's libraries."""
    return tuple(path.rpartition("/")[2].partition(".so.")[2] for path in state.libraries)


def unbuilt(ctx: AuditContext) -> bool:
    """Return whether the running kernel lacks the installed driver's module, or has it in another version than the
    stack's.

    A different module counts only if the libraries have the stack's version.
    """
    state = driver_of(ctx)
    if state.absent:
        return False
    return not state.module or (state.linked(wanted_version(ctx)) and state.module != wanted_version(ctx))


def build_errors(ctx: AuditContext) -> tuple[str, ...]:
    """Return the compiler's messages of the failed module build for the running kernel; empty without a failure."""
    tree, version = dkms_tree(ctx), wanted_version(ctx)
    if not unbuilt(ctx) or (version, running_kernel(ctx)) not in tree.failed:
        return ()
    return tuple(message for of, message in tree.errors if of == version)


def unfit(ctx: AuditContext, rule: str) -> tuple[str, ...]:
    """Return the reasons why the compatibility rule ``rule`` rejects the host; else empty."""
    for probe in HOST_PROBES:
        ctx.require(probe)
    running_kernel(ctx)  # `running_kernel` raises Unread if the kernel is unknown
    stack, rules = ctx.stack, ctx.desired.rules
    fits = ctx.settled(("misfits", Same(stack), Same(rules)), partial(_misfits, stack, rules))
    misfits = (misfit for misfit in fits if misfit.rule == rule)
    return tuple(line for misfit in misfits for line in (misfit.sentence, f"what works: {misfit.nearest}"))


def _misfits(stack: Stack, rules: tuple[RoleRules, ...], facts: Facts) -> tuple[Misfit, ...]:
    return tuple(check_host(stack, read_host(facts), rules))


def since_boot(ctx: AuditContext) -> Iterator[KernelLine]:
    """Yield the kernel's log lines since the last load of the driver's module or, without a load, since the boot.

    Lines without a time are left out, because they may be older. Raises ``Unread`` if the log or the boot time cannot
    be read.
    """
    lines = kernel_log(ctx)
    begin = max(loaded_at(lines) or _booted(ctx), _booted(ctx))
    return (line for line in lines if line.at is not None and line.at >= begin)


def matching(ctx: AuditContext, pattern: str) -> tuple[str, ...]:
    """Return the different lines of ``since_boot`` that match ``pattern``. Raises ``Unread`` as ``since_boot`` does."""
    sought = Pattern(pattern)
    return tuple(dict.fromkeys(line.text for line in since_boot(ctx) if sought.search(line.text)))


def said_since_boot(ctx: AuditContext, pattern: str) -> tuple[str, ...]:
    """Return the lines that ``matching`` returns; empty if the log cannot be read.

    Use this function for messages that only support other evidence.
    """
    try:
        return matching(ctx, pattern)
    except Unread:
        return ()


def _booted(ctx: AuditContext) -> datetime:
    text = ctx.text(BOOTED).strip()
    if not Pattern(r"[0-9]{1,10}").fullmatch(text):
        raise Unread("/proc/stat has no boot time")
    return datetime.fromtimestamp(int(text), UTC) - BOOT_SLACK
