"""The role that all other roles require: a consistent dpkg, build tools, and a fixed kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from hostwright.resources import Debs, DpkgInOrder, File, FreeSpace, KernelPackages, KernelThere, Resource
from hostwright.roles import RoleContext, role, services_at_work


@dataclass(frozen=True, slots=True)
class Base:
    """Variables of the role ``base``."""

    #: packages that other roles need, such as compilers, DKMS and curl
    packages: tuple[str, ...] = (
        "build-essential", "dkms", "curl", "ca-certificates", "gnupg", "pciutils", "kmod", "procps",
    )  # fmt: skip
    #: origin of the distribution's packages for all roles. ``sources``: the host's apt sources; ``mirror``: only files
    #: that the controller sends
    packages_from: Literal["sources", "mirror"] = "sources"
    #: name prefixes of packages that unattended-upgrades must not upgrade, besides the packages of other roles
    never_unattended: tuple[str, ...] = (
        "nvidia-", "libnvidia-", "cuda-", "libcudnn", "linux-image-", "linux-headers-", "linux-generic",
    )  # fmt: skip
    #: minimum network throughput between hosts in MB/s (proof `base.network`); 0: no requirement
    network_mb_per_s: int = 0


@role()
def base(v: Base, ctx: RoleContext) -> Iterator[Resource]:
    """The host can build kernel modules, and only this stack installs a kernel."""
    if shares := ctx.shares():
        yield FreeSpace(ctx.stack.requirements.free_bytes, shares)
    yield DpkgInOrder(ctx.leaving(), services_at_work())

    never = (*v.never_unattended, *ctx.never_unattended())
    yield File("/etc/apt/apt.conf.d/52hostwright", ctx.render("base/unattended.conf.j2", never=never))
    yield Debs(v.packages)
    yield KernelThere()
    yield KernelPackages()
