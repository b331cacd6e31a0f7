"""Values that an audit records about the CUDA toolkit."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.roles import DISTRIBUTION, AuditValue, PackageHold, PackageVersion, RoleContext, Snippet
from hostwright.standard.roles.cuda import Cuda
from hostwright.standard.roles.cuda.section import CudaSection

TOOLKITS = Snippet.beside(__file__, "audit.sh", "cuda")

#: name patterns of a CUDA toolkit's packages
FAMILIES = ("cuda*", "libcub*", "libcud*", "libcuf*", "libcura*", "libcus*", "libnccl*", "libnpp*", "libnv*")


def audit_values(v: Cuda, ctx: RoleContext) -> Iterator[AuditValue]:
    """Yield nvcc's version, the toolkit's packages and holds, the link /usr/local/cuda, and other CUDA on the host."""
    wanted = ctx.section(CudaSection)
    for one in wanted.toolkits:
        more = "" if one is wanted else f" {one.series}"
        yield AuditValue(f"nvcc{more}", TOOLKITS.line(f"nvcc {one.series}"), one.nvcc)
        for name, version in one.packages.items():
            title = f"toolkit{more}" if name == one.package else name
            yield AuditValue(title, PackageVersion(name, FAMILIES), version)
            yield AuditValue(f"{title} hold", PackageHold(name, FAMILIES), "held")
    yield AuditValue("link", TOOLKITS.line("link"), wanted.prefix)
    # The role does not change other toolkits, so the list has no expected value.
    yield AuditValue("toolkits", TOOLKITS.line("toolkits"), among=DISTRIBUTION)
    yield AuditValue("sources", TOOLKITS.line("sources"), among=DISTRIBUTION)
