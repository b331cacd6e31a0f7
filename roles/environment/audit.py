"""Values that an audit records about libraries and tools in login shells."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.roles import DISTRIBUTION, AuditValue, FileThere, LibraryPath, RoleContext, Snippet
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.environment import Environment, opened

PTXAS = Snippet("environment", 'say ptxas "$(command -v ptxas)"')
#: name prefixes of two libraries. The paths of these libraries represent the paths of all CUDA libraries.
OPENED = ("libcudart.", "libcudnn.")


def audit_values(v: Environment, ctx: RoleContext) -> Iterator[AuditValue]:
    """Yield the paths at which the loader finds the stack's libraries, and the presence of the login file and tools."""
    prefix = ctx.section(CudaSection).prefix
    for library in opened(ctx):
        if library.startswith(OPENED):
            yield AuditValue(library, LibraryPath(library), f"{prefix}/targets/x86_64-linux/lib/{library}")
    yield AuditValue("profile", FileThere("/etc/profile.d/cuda.sh"), "yes")
    yield AuditValue("ptxas", PTXAS.line("ptxas"), among=DISTRIBUTION)
