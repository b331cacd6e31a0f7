"""Tools and libraries for all contexts: login shells, commands over SSH, cron, systemd units and sudo."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.resources import DPKG_LOCK, EnvironmentSection, File, Link, LoaderCache, Resource
from hostwright.roles import RoleContext, role
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.cudnn.section import CudnnSection
from hostwright.standard.roles.environment.loaderconf import LDCONFIG, OneToolkitLoaded

COMMAND = "/usr/local/lib/hostwright/cuda-command"


@dataclass(frozen=True, slots=True)
class Environment:
    """Variables of the role ``environment``."""

    #: CUDA tools that users can run without a login shell. TensorFlow's XLA runs ptxas and fatbinary.
    tools: tuple[str, ...] = ("nvcc", "ptxas", "fatbinary", "nvlink", "cuobjdump", "nvdisasm")
    #: directory for links to the tools. Only /usr/bin is on every user's PATH and on cron's PATH.
    tools_directory: str = "/usr/bin"


def opened(ctx: RoleContext) -> tuple[str, ...]:
    """Return the libraries that programs must find: the frameworks' libraries, else CUDA's runtime and cuDNN."""
    cudnn = ctx.find(CudnnSection)
    layers = {"cuda", "cudnn"} if cudnn else {"cuda"}
    frameworks = [section for section in ctx.sections.values() if isinstance(section, EnvironmentSection)]
    opened_there = (item for section in frameworks for item in section.libraries.items())
    of_frameworks = tuple(dict.fromkeys(name for name, layer in opened_there if layer in layers))
    return of_frameworks or (ctx.section(CudaSection).runtime, *([cudnn.library] if cudnn else []))


@role(needs=["cuda"], after=["cudnn"], uses=["cudnn"])
def environment(v: Environment, ctx: RoleContext) -> Iterator[Resource]:
    """Libraries are in the loader's cache, for all contexts; tools are in /usr/bin and on the path of login shells.

    Users' own files are never edited.
    """
    cuda = ctx.section(CudaSection)
    prefix, series = cuda.prefix, cuda.series
    toolkit = {"prefix": prefix, "series": series, "compiler": cuda.host_compiler}
    profiler = f"{prefix}/extras/CUPTI/lib64"
    conf = f"/etc/ld.so.conf.d/cuda-{series.replace('.', '-')}.conf"

    directories = (f"{prefix}/targets/x86_64-linux/lib", profiler)
    # ``ldconfig`` must run here because no other state checks the loader's cache for the profiler's library.
    yield File(conf, ctx.render("environment/ld.conf.j2", libraries=directories), then=(LDCONFIG,), lock=DPKG_LOCK)
    yield OneToolkitLoaded(conf)
    yield LoaderCache(opened(ctx), prefix, conf)
    yield File(
        "/etc/profile.d/cuda.sh",
        ctx.render("environment/cuda.sh.j2", libraries=(f"{prefix}/lib64", profiler), **toolkit),
        check="sh -n %s",
    )
    command = ctx.render("environment/cuda-command.j2", **toolkit)
    yield File(COMMAND, command, mode="755", check="sh -n %s")
    for tool in v.tools:
        yield Link(f"{v.tools_directory}/{tool}", COMMAND)
