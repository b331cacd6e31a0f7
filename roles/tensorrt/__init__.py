"""TensorRT, which TensorFlow loads for TF-TRT, installed once per host in a separate directory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.resources import (
    DPKG_LOCK,
    ArchiveUnpacked,
    DebFile,
    DebsAbsent,
    File,
    LoaderCache,
    NoStrayFiles,
    Part,
    Resource,
)
from hostwright.roles import RoleContext, role
from hostwright.standard.roles.tensorrt.section import TensorrtSection

SECOND = "two TensorRTs of one major version: a program may load parts of both"
CONF = "/etc/ld.so.conf.d/tensorrt.conf"


@dataclass(frozen=True, slots=True)
class Tensorrt:
    """Variables of the role ``tensorrt``. Version and archive come from the stack."""

    #: loader directories from which a second TensorRT is moved to /var/lib/hostwright/set-aside
    loader_directories: tuple[str, ...] = (
        "/usr/lib/x86_64-linux-gnu", "/usr/local/lib/x86_64-linux-gnu", "/usr/lib", "/usr/local/lib",
    )  # fmt: skip


@role(needs=["cuda", "cudnn"], after=["environment"], short="trt")
def tensorrt(v: Tensorrt, ctx: RoleContext) -> Iterator[Resource]:
    """The archive's libraries and headers, the runtime compiler that they need, and their directories on the loader's
    path.

    The role is optional: TensorFlow also works without TensorRT.
    """
    wanted, stack = ctx.section(TensorrtSection), ctx.stack
    major, nvrtc = wanted.major, wanted.nvrtc
    home = f"{wanted.prefix}/lib"
    right = (f"*.so.{major}", f"*.so.{wanted.library_version}")
    yield DebsAbsent((f"libnvinfer{major}", f"libnvinfer-plugin{major}"), SECOND)
    yield NoStrayFiles(f"libnvinfer*.so.{major}*", home, right, v.loader_directories, SECOND)
    yield ArchiveUnpacked(
        "tensorrt",
        wanted.version,
        stack.artifact(wanted.artifact),
        (
            Part(f"{wanted.inside}/targets/x86_64-linux-gnu/lib", home),
            Part(f"{wanted.inside}/include", f"{wanted.prefix}/include"),
        ),
        scratch=f"{wanted.prefix}.hostwright-new",
    )
    compiler = f"{nvrtc.libraries}/{nvrtc.library}"
    yield DebFile(stack.artifact(nvrtc.artifact), nvrtc.package, nvrtc.version, file=compiler)
    yield File(CONF, f"{home}\n{nvrtc.libraries}\n", then=("/sbin/ldconfig",), lock=DPKG_LOCK)
    yield LoaderCache(wanted.libraries, wanted.prefix, CONF)
    yield LoaderCache((nvrtc.library,), nvrtc.prefix, CONF)
