"""Values that an audit records about NCCL."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.roles import AuditValue, LibraryPath, LibraryVersion, PackageHold, PackageVersion, RoleContext
from hostwright.standard.roles.cuda.audit import FAMILIES
from hostwright.standard.roles.nccl import Nccl
from hostwright.standard.roles.nccl.section import DEVELOPMENT, HOME, LIBRARY, PACKAGE, NcclSection


def audit_values(v: Nccl, ctx: RoleContext) -> Iterator[AuditValue]:
    """Yield NCCL's two packages with holds, and version and path of the NCCL library that programs load."""
    wanted = ctx.section(NcclSection)
    for package in (PACKAGE, DEVELOPMENT):
        yield AuditValue(package, PackageVersion(package, FAMILIES), wanted.package_version)
        yield AuditValue(f"{package} hold", PackageHold(package, FAMILIES), "held")
    yield AuditValue("library", LibraryVersion(LIBRARY), wanted.version)
    yield AuditValue("loaded from", LibraryPath(LIBRARY), f"{HOME}/{LIBRARY}")
