"""NCCL (data exchange between the GPUs of a job), built for the stack's CUDA and installed once per host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.resources import DebFile, DebFiles, LoaderCache, NoStrayFiles, Resource
from hostwright.roles import RoleContext, role
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.nccl.section import DEVELOPMENT, HOME, LIBRARY, PACKAGE, NcclSection

SECOND = "two NCCLs in the loader's path: a program may load another NCCL than it was built with"
#: distribution's loader file with the directory ``HOME``
CONF = "/etc/ld.so.conf.d/x86_64-linux-gnu.conf"


@dataclass(frozen=True, slots=True)
class Nccl:
    """Variables of the role ``nccl``. Version and packages come from the stack."""

    #: loader directories from which an NCCL without a package is moved to /var/lib/hostwright/set-aside
    loader_directories: tuple[str, ...] = ("/usr/local/lib/x86_64-linux-gnu", "/usr/lib", "/usr/local/lib")


@role(needs=["cuda"])
def nccl(v: Nccl, ctx: RoleContext) -> Iterator[Resource]:
    """Library and header at the stack's version, held; no other NCCL precedes them.

    This NCCL is for programs compiled on the host, such as Horovod. TensorFlow's wheels contain their own.
    """
    wanted, stack = ctx.section(NcclSection), ctx.stack
    toolkit = f"{ctx.section(CudaSection).prefix}/targets/x86_64-linux/lib"
    right = ("libnccl.so", LIBRARY, f"libnccl.so.{wanted.version}")
    yield NoStrayFiles("libnccl.so*", HOME, right, (toolkit, *v.loader_directories), SECOND)
    version = wanted.package_version
    yield DebFiles(
        (
            DebFile(stack.artifact(wanted.artifact), PACKAGE, version, file=f"{HOME}/{LIBRARY}"),
            DebFile(stack.artifact(wanted.development), DEVELOPMENT, version, file="/usr/include/nccl.h"),
        )
    )
    yield LoaderCache((LIBRARY,), HOME, CONF)
