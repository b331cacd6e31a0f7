"""Values that an audit records about TensorRT."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.roles import AuditValue, LibraryPath, LibraryVersion, PackageHold, PackageVersion, RoleContext
from hostwright.standard.roles.cuda.audit import FAMILIES
from hostwright.standard.roles.tensorrt import Tensorrt
from hostwright.standard.roles.tensorrt.section import TensorrtSection


def audit_values(v: Tensorrt, ctx: RoleContext) -> Iterator[AuditValue]:
    """Yield version and path of the TensorRT libraries that programs load, and version and hold of the runtime
    compiler.
    """
    wanted = ctx.section(TensorrtSection)
    for library in wanted.libraries:
        name = library.partition(".so")[0]
        yield AuditValue(name, LibraryVersion(library), wanted.library_version)
        yield AuditValue(f"{name} from", LibraryPath(library), f"{wanted.prefix}/lib/{library}")
    package = wanted.nvrtc.package
    yield AuditValue("nvrtc", PackageVersion(package, FAMILIES), wanted.nvrtc.version)
    yield AuditValue("nvrtc hold", PackageHold(package, FAMILIES), "held")
