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
)
from hostwright.roles import RoleContext, role
from hostwright.standard.roles.cuda.compilers import HostCompiler
from hostwright.standard.roles.cuda.rules import newest_gcc
from hostwright.standard.roles.cuda.section import CudaSection

#: a toolkit package that brings one of these would overwrite the .run's driver; apt's simulation is searched for them
DRIVER = "^(nvidia-|cuda-drivers|libcuda1|libnvidia-([^c]|c[^o]|co[^n])|xserver-xorg-video-nvidia)"
NETWORK = "developer.download.nvidia.com/compute/cuda/repos"
FORMER = "/usr/share/keyrings/cuda-repo-"  #: in source lists that this role wrote for other toolkits
SIDE_BY_SIDE = "the former toolkit stays where it is, and nothing more is installed from its repository"
FOREIGN = "one source of CUDA: its key was changed in 2022, and its newer packages would win"


@dataclass(frozen=True, slots=True)
class Cuda:
    """Variables of the role ``cuda``; versions, packages and the repository are the stack's."""

    keep_repository: bool = True  #: false: delete the repository from /var (2.5 GB) once the toolkit is installed
    network_repository: bool = False  #: true: leave apt sources of NVIDIA's network repository as they are


@role(needs=["base"], uses=["driver"])
def cuda(v: Cuda, ctx: RoleContext) -> Iterator[Resource]:
    """The toolkit at its exact version, held, from the vendor's local repository and that repository's own key."""
    stack = ctx.stack
    wanted = ctx.section(CudaSection)
    repository = wanted.repository
    keyring = f"/usr/share/keyrings/{repository.package}-keyring.gpg"
    exact = tuple(f"{name}={version}" for name, version in wanted.components.items())
    libraries = (f"{wanted.prefix}/targets/x86_64-linux/lib", f"{wanted.prefix}/extras/CUPTI/lib64")
    toolkit = (
        # the meta package `cuda-11-2` is never named: it brings cuda-drivers
        Debs((f"{wanted.package}={wanted.package_version}", *exact), True, DRIVER, repository.list_file, wanted.prefix),
        PackagedTree(wanted.prefix, libraries, repository.list_file),
        CommandReports(f"{wanted.prefix}/bin/nvcc", "-V", wanted.nvcc, exact, repository.list_file, wanted.prefix),
    )
    source = (
        LocalRepo(repository.package, stack.artifact(repository.artifact), repository.key_file, repository.list_file),
        Keyring(keyring, repository.key_file, repository.fingerprint),
        AptSource(repository.list_file, f"file://{repository.directory}", "/", keyring),
    )
    if newest := newest_gcc(wanted.version):
        yield HostCompiler(wanted.version, newest, wanted.compiler)
    if wanted.compiler:
        yield Debs((wanted.compiler,))
    if not v.network_repository:
        yield SourcesDisabled((NETWORK, repository.directory), FOREIGN, keep=repository.list_file)
    yield SourcesDisabled((FORMER,), SIDE_BY_SIDE, keep=repository.list_file)
    yield Delivered(repository.pin_file, stack.artifact(repository.pin))
    yield from source if v.keep_repository else (When(Differs(toolkit), state) for state in source)
    name = Alternative("/usr/local/cuda", "cuda", wanted.prefix, priority=int(wanted.series.replace(".", "")))
    yield FormerName(name)
    yield from toolkit
    if not v.keep_repository:
        yield RepoDropped(repository.package, Differs(toolkit))
    yield Link(f"{wanted.prefix}/lib64", "targets/x86_64-linux/lib")
    yield Link(f"{wanted.prefix}/include", "targets/x86_64-linux/include")
    yield name
