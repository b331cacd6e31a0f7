"""The CUDA toolkit, side by side under /usr/local, never touching the driver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.resources import (
    Alternative,
    AptSource,
    CommandReports,
    Debs,
    Delivered,
    Differs,
    FormerName,
    Keyring,
    Link,
    LocalRepo,
    PackagedTree,
    RepoDropped,
    Resource,
    SourcesDisabled,
    When,
    signed_repository,
)
from hostwright.roles import RoleContext, Stack, role
from hostwright.standard.roles.cuda.compilers import HostCompiler
from hostwright.standard.roles.cuda.rules import newest_gcc
from hostwright.standard.roles.cuda.section import CudaSection, LocalRepository

#: a toolkit package that brings one of these would overwrite the .run's driver; apt's simulation is searched for them
DRIVER = "^(nvidia-|cuda-drivers|libcuda1|libnvidia-([^c]|c[^o]|co[^n])|xserver-xorg-video-nvidia)"
NETWORK = "developer.download.nvidia.com/compute/cuda/repos"
FORMER = "/usr/share/keyrings/cuda-repo-"  #: in source lists that this role wrote for other toolkits
SIDE_BY_SIDE = "the former toolkit stays where it is, and nothing more is installed from its repository"
FOREIGN = "one source of CUDA: its key was changed in 2022, and its newer packages would win"


@dataclass(frozen=True, slots=True)
class Cuda:
    """Variables of the role ``cuda``; versions, packages and the repository are the stack's."""

    keep_repository: bool = True  #: false: delete a repository in /var (2.5 GB) once the toolkit is installed
    network_repository: bool = False  #: true: leave all apt sources of NVIDIA's network repository as they are


@role(needs=["base"], uses=["driver"])
def cuda(v: Cuda, ctx: RoleContext) -> Iterator[Resource]:
    """The toolkit at its exact version, held, from one repository of the vendor's with that repository's own key."""
    wanted = ctx.section(CudaSection)
    local, network, list_file = wanted.repository, wanted.network, wanted.source.list_file
    exact = tuple(f"{name}={version}" for name, version in wanted.components.items())
    libraries = (f"{wanted.prefix}/targets/x86_64-linux/lib", f"{wanted.prefix}/extras/CUPTI/lib64")
    toolkit = (
        # the meta package `cuda-11-2` is never named: it brings cuda-drivers
        Debs((f"{wanted.package}={wanted.package_version}", *exact), True, DRIVER, list_file, wanted.prefix),
        PackagedTree(wanted.prefix, libraries, list_file),
        CommandReports(f"{wanted.prefix}/bin/nvcc", "-V", wanted.nvcc, exact, list_file, wanted.prefix),
    )
    if newest := newest_gcc(wanted.version):
        yield HostCompiler(wanted.version, newest, wanted.compiler)
    if wanted.compiler:
        yield Debs((wanted.compiler,))
    if not v.network_repository:
        others = tuple(one.list_file for one in ctx.repositories() if NETWORK in one.uri and one != network)
        texts = (NETWORK, local.directory) if local else (NETWORK,)
        yield SourcesDisabled(texts, FOREIGN, keep=list_file, others=others)
    yield SourcesDisabled((FORMER,), SIDE_BY_SIDE, keep=list_file)
    if network:
        yield from signed_repository(network, ctx.stack)
    if local:
        yield Delivered(local.pin_file, ctx.stack.artifact(local.pin))
        unpacked = _unpacked(local, ctx.stack)
        yield from unpacked if v.keep_repository else (When(Differs(toolkit), state) for state in unpacked)
    name = Alternative("/usr/local/cuda", "cuda", wanted.prefix, priority=int(wanted.series.replace(".", "")))
    yield FormerName(name)
    yield from toolkit
    if local and not v.keep_repository:
        yield RepoDropped(local.package, Differs(toolkit))
    yield Link(f"{wanted.prefix}/lib64", "targets/x86_64-linux/lib")
    yield Link(f"{wanted.prefix}/include", "targets/x86_64-linux/include")
    yield name


def _unpacked(local: LocalRepository, stack: Stack) -> tuple[Resource, ...]:
    """A repository in a ``.deb``, the key that it brings, and its source list."""
    keyring = f"/usr/share/keyrings/{local.package}-keyring.gpg"
    return (
        LocalRepo(local.package, stack.artifact(local.artifact), local.key_file, local.list_file),
        Keyring(keyring, local.key_file, local.fingerprint),
        AptSource(local.list_file, f"file://{local.directory}", "/", keyring),
    )
