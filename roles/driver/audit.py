"""Values of a host's driver that audits compare with the stack."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from packaging.specifiers import SpecifierSet

from hostwright.resources import named_like
from hostwright.roles import (
    KERNEL,
    PRODUCT,
    AuditValue,
    FileLine,
    FileThere,
    LibraryVersion,
    PackageOf,
    RoleContext,
    Snippet,
    UnitProperty,
    kernel_version,
)
from hostwright.standard.roles.driver import PERSISTENCED, Driver
from hostwright.standard.roles.driver.rules import kernels_of
from hostwright.standard.roles.driver.section import DriverSection
from hostwright.standard.roles.driver.states.others import PREFERENCES

MODULE = Snippet.beside(__file__, "audit.sh", "driver")
LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")


def audit_values(v: Driver, ctx: RoleContext) -> Iterator[AuditValue]:
    """Yield the versions of the driver's parts, and the state of its files, services and pins."""
    wanted = ctx.section(DriverSection)
    yield AuditValue("loaded", FileLine("/sys/module/nvidia/version"), wanted.version)
    yield AuditValue("module", MODULE.line("module"), wanted.version)
    built = not wanted.packages or any(named_like(name, ("*-dkms", "nvidia-dkms-*")) for name in wanted.packages)
    yield AuditValue("dkms", MODULE.line("dkms module"), wanted.version if built else None)
    for library in LIBRARIES:
        yield AuditValue(library.partition(".")[0], LibraryVersion(library), wanted.version)
    yield AuditValue("nouveau", MODULE.line("nouveau"), "gone")
    yield AuditValue("driver pins", FileThere(PREFERENCES), "yes")
    yield AuditValue("nvidia-smi", FileThere("/usr/bin/nvidia-smi", executable=True), "yes")
    yield AuditValue("persistence daemon", UnitProperty(PERSISTENCED), "active")
    # No value is expected, because only hosts with switches have Fabric Manager.
    yield AuditValue(
        "fabric manager", PackageOf(("nvidia-fabricmanager", "nvidia-fabricmanager-[0-9]*")), among=PRODUCT
    )
    yield AuditValue("kernel fits", KERNEL, derive=partial(_fits, wanted))


def _fits(wanted: DriverSection, kernel: str) -> str | None:
    kernels = kernels_of(wanted.version, wanted)
    running = kernel_version(kernel)
    if running is None or kernels is None:
        return None
    return "yes" if SpecifierSet(kernels).contains(running) else "no"
