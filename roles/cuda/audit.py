"""The values of the CUDA toolkit that audits compare."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.roles import DISTRIBUTION, AuditValue, PackageHold, PackageVersion, RoleContext, Snippet
from hostwright.standard.roles.cuda import Cuda
from hostwright.standard.roles.cuda.section import CudaSection

TOOLKITS = Snippet.beside(__file__, "audit.sh", "cuda")

#: the package families of a toolkit
FAMILIES = ("cuda*", "libcub*", "libcud*", "libcuf*", "libcura*", "libcus*", "libnccl*", "libnpp*", "libnv*")


def audit_values(v: Cuda, ctx: RoleContext) -> Iterator[AuditValue]:
    """The compiler, the toolkit's packages and their holds, the link, and other CUDA on the host."""
    wanted = ctx.section(CudaSection)
    yield AuditValue("nvcc", TOOLKITS.line(f"nvcc {wanted.series}"), wanted.nvcc)
    packages = {"toolkit": (wanted.package, wanted.package_version)}
    packages |= {name: (name, version) for name, version in wanted.components.items()}
    for title, (name, version) in packages.items():
        yield AuditValue(title, PackageVersion(name, FAMILIES), version)
        yield AuditValue(f"{title} hold", PackageHold(name, FAMILIES), "held")
    yield AuditValue("link", TOOLKITS.line("link"), wanted.prefix)
    # Toolkits are installed side by side and the role leaves others alone: another one is not a deviation.
    yield AuditValue("toolkits", TOOLKITS.line("toolkits"), among=DISTRIBUTION)
    yield AuditValue("sources", TOOLKITS.line("sources"), among=DISTRIBUTION)
