"""cuDNN, installed once per host, in the directory of the stack's toolkit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.resources import ArchiveUnpacked, DebsAbsent, NoStrayFiles, Part, Resource
from hostwright.roles import RoleContext, role
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.cudnn.section import CudnnSection

SECOND = "two cuDNN 8 in one process: libcudnn_ops_infer.so.8 not defined"


@dataclass(frozen=True, slots=True)
class Cudnn:
    """Variables of the role ``cudnn``. Version and archive come from the stack."""

    #: loader directories from which a second cuDNN is moved to /var/lib/hostwright/set-aside
    loader_directories: tuple[str, ...] = (
        "/usr/lib/x86_64-linux-gnu", "/usr/local/lib/x86_64-linux-gnu", "/usr/lib", "/usr/local/lib",
    )  # fmt: skip


@role(needs=["cuda"])
def cudnn(v: Cudnn, ctx: RoleContext) -> Iterator[Resource]:
    """Libraries, their links and all headers of the archive; no second cuDNN of the same major version."""
    wanted, prefix = ctx.section(CudnnSection), ctx.section(CudaSection).prefix
    target = f"{prefix}/targets/x86_64-linux"
    major = wanted.version.partition(".")[0]
    libraries = f"libcudnn*.so.{major}*"
    right = (f"*.so.{major}", f"*.so.{wanted.library_version}")
    yield DebsAbsent((f"libcudnn{major}", f"libcudnn{major}-*", "nvidia-cudnn"), SECOND)
    yield NoStrayFiles(libraries, f"{target}/lib", right, v.loader_directories, SECOND)
    yield ArchiveUnpacked(
        wanted.record,
        wanted.version,
        ctx.stack.artifact(wanted.artifact),
        (
            Part(f"{wanted.inside}/include", f"{target}/include"),
            Part(f"{wanted.inside}/{wanted.libraries}", f"{target}/lib"),
        ),
        scratch=f"{prefix}/.hostwright-cudnn",
    )
