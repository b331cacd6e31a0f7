"""The base of every other layer: a consistent dpkg, build tools, and a kernel that stays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from hostwright.resources import Debs, DpkgInOrder, File, FreeSpace, KernelPackages, KernelThere, Resource
from hostwright.roles import RoleContext, role, services_at_work


@dataclass(frozen=True, slots=True)
class Base:
    """Variables of the role ``base``."""

    #: compilers, dkms and tools for headers; downloads and repository keys; inspection of cards, modules and their
    #: users
    packages: tuple[str, ...] = (
        "build-essential", "dkms", "curl", "ca-certificates", "gnupg", "pciutils", "kmod", "procps",
    )  # fmt: skip
    #: where apt takes the distribution's packages from, for all roles: sources (those that the host's apt is set to) or
    #: mirror (this machine's files alone)
    packages_from: Literal["sources", "mirror"] = "sources"
    #: prefixes of the packages that unattended-upgrades leaves alone, beside those that the layers name
    never_unattended: tuple[str, ...] = (
        "nvidia-", "libnvidia-", "cuda-", "libcudnn", "linux-image-", "linux-headers-", "linux-generic",
    )  # fmt: skip
    network_mb_per_s: int = 0  #: MB/s that hosts must send to each other (proof `base.network`); 0: nothing is asked


@role()
def base(v: Base, ctx: RoleContext) -> Iterator[Resource]:
    """The host can build a kernel module, and nothing but this stack ever brings a kernel to it."""
    if shares := ctx.shares():
        yield FreeSpace(ctx.stack.requirements.free_bytes, shares)
    yield DpkgInOrder(ctx.leaving(), services_at_work())

    never = (*v.never_unattended, *ctx.never_unattended())
    yield File("/etc/apt/apt.conf.d/52hostwright", ctx.render("base/unattended.conf.j2", never=never))
    yield Debs(v.packages)
    yield KernelThere()
    yield KernelPackages()
