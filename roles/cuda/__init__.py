"""The CUDA toolkit: releases side by side under /usr/local. The driver is never changed."""

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
from hostwright.standard.roles.cuda.section import CudaRelease, CudaSection

#: pattern of driver packages in apt's simulation. These packages would overwrite the driver from NVIDIA's ``.run``
#: file.
DRIVER = "^(nvidia-|cuda-drivers|libcuda1|libnvidia-([^c]|c[^o]|co[^n])|xserver-xorg-video-nvidia)"
NETWORK = "developer.download.nvidia.com/compute/cuda/repos"
FORMER = "/usr/share/keyrings/cuda-repo-"  #: prefix of keyring paths in apt's source lists for other CUDA toolkits
SIDE_BY_SIDE = "the former toolkit is kept, and no more packages come from its repository"
FOREIGN = "only one source of CUDA: its key was changed in 2022, and apt would prefer its newer packages"


@dataclass(frozen=True, slots=True)
class Cuda:
    """Variables of the role ``cuda``. Versions, packages and repository come from the stack."""

    #: true: keep the local repository in /var (2.5 GB); false: delete the repository after the toolkit's installation
    keep_repository: bool = True
    network_repository: bool = False  #: true: keep apt sources of NVIDIA's network repository unchanged


@role(needs=["base"], uses=["driver"])
def cuda(v: Cuda, ctx: RoleContext) -> Iterator[Resource]:
    """Each toolkit at its exact version, held, from one of the vendor's repositories with its own key."""
    wanted = ctx.section(CudaSection)
    first, *more = dict.fromkeys(one.source.list_file for one in wanted.toolkits)
    for one in wanted.toolkits:
        if newest := newest_gcc(one.version):
            yield HostCompiler(one.version, newest, one.compiler)
        if one.compiler:
            yield Debs((one.compiler,))
    if not v.network_repository:
        driver = (one.list_file for one in ctx.repositories() if NETWORK in one.uri)
        others = tuple(path for path in dict.fromkeys((*more, *driver)) if path != first)
        directories = (one.directory for one in wanted.toolkits if one.directory)
        yield SourcesDisabled((NETWORK, *directories), FOREIGN, keep=first, others=others)
    yield SourcesDisabled((FORMER,), SIDE_BY_SIDE, keep=first, others=tuple(more))
    yield from dict.fromkeys(state for one in wanted.toolkits for state in _source(one, v, ctx.stack))
    name = Alternative("/usr/local/cuda", "cuda", wanted.prefix, priority=int(wanted.series.replace(".", "")))
    yield FormerName(name)
    for one in wanted.toolkits:
        yield from _packages(one)
        if one.repository and not v.keep_repository:
            yield RepoDropped(one.repository.package, Differs(_packages(one)))
        yield Link(f"{one.prefix}/lib64", "targets/x86_64-linux/lib")
        yield Link(f"{one.prefix}/include", "targets/x86_64-linux/include")
    yield name


def _packages(toolkit: CudaRelease) -> tuple[Resource, ...]:
    prefix, source = toolkit.prefix, toolkit.source.list_file
    components = tuple(f"{name}={version}" for name, version in toolkit.components.items())
    libraries = (f"{prefix}/targets/x86_64-linux/lib", f"{prefix}/extras/CUPTI/lib64")
    # The meta package `cuda-11-2` is never installed because the package depends on cuda-drivers.
    words = (f"{toolkit.package}={toolkit.package_version}", *components)
    files = PackagedTree(prefix, libraries, source)
    return (
        Debs(words, True, DRIVER, source, files.tree),
        files,
        CommandReports(f"{prefix}/bin/nvcc", "-V", toolkit.nvcc, components, source, files.tree),
    )


def _source(toolkit: CudaRelease, v: Cuda, stack: Stack) -> Iterator[Resource]:
    if toolkit.network:
        yield from signed_repository(toolkit.network, stack)
    if local := toolkit.repository:
        keyring = f"/usr/share/keyrings/{local.package}-keyring.gpg"
        unpacked = (
            LocalRepo(local.package, stack.artifact(local.artifact), local.key_file, local.list_file),
            Keyring(keyring, local.key_file, local.fingerprint),
            AptSource(local.list_file, f"file://{local.directory}", "/", keyring),
        )
        yield Delivered(local.pin_file, stack.artifact(local.pin))
        condition = Differs(_packages(toolkit))
        yield from unpacked if v.keep_repository else (When(condition, state) for state in unpacked)
