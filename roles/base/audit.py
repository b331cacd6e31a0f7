"""Values that an audit records about the host itself."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.roles import (
    DISTRIBUTION,
    KERNEL,
    PRODUCT,
    AuditValue,
    FileLine,
    FileThere,
    PackageVersion,
    RoleContext,
    Snippet,
)
from hostwright.standard.roles.base import Base

MACHINE = Snippet.beside(__file__, "audit.sh", "base")
DMI = "/sys/class/dmi/id/"


def audit_values(v: Base, ctx: RoleContext) -> Iterator[AuditValue]:
    """Yield values of the machine, its kernel and firmware, and the packages excluded from unattended upgrades."""
    cpu = MACHINE.line("cpu")
    yield AuditValue("kernel", KERNEL, among=DISTRIBUTION)
    yield AuditValue("distribution", DISTRIBUTION)
    yield AuditValue("secure boot", MACHINE.line("secure boot"))
    yield AuditValue("product", PRODUCT)
    yield AuditValue("board", FileLine(f"{DMI}board_name"), among=PRODUCT)
    yield AuditValue("bios version", FileLine(f"{DMI}bios_version"), among=PRODUCT)
    yield AuditValue("bios date", FileLine(f"{DMI}bios_date"), among=PRODUCT)
    yield AuditValue("cpu", cpu, among=PRODUCT)
    yield AuditValue("microcode", MACHINE.line("microcode"), among=cpu)
    yield AuditValue("memory", MACHINE.line("memory"), among=PRODUCT)
    yield AuditValue("dkms", PackageVersion("dkms"), among=DISTRIBUTION)
    yield AuditValue("upgrades blacklist", FileThere("/etc/apt/apt.conf.d/52hostwright"), "yes")
