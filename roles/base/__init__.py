"""What every other layer stands on: a dpkg in order, build tools, a kernel that stays, and no second NVIDIA driver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.plan.model import Probe, Resource
from hostwright.plan.role import Wanted, role
from hostwright.resources.conditions import Answers
from hostwright.resources.files.files import Absent, File
from hostwright.resources.packages.packages import Debs, DebsAbsent, DpkgInOrder
from hostwright.resources.runfile import DRIVER_PACKAGES, NOT_DRIVER
from hostwright.resources.system.kernel import UPDATE_INITRAMFS, Initramfs, KernelPackages, KernelThere, NouveauGone
from hostwright.resources.system.room import FreeSpace
from hostwright.resources.system.services import Disturbing

PREFERENCES = "base/no-other-driver.pref.j2"
NOUVEAU_OFF = "/etc/modprobe.d/hostwright-nouveau.conf"
DRIVER_LOADED = Probe("test -d /sys/module/nvidia")


@dataclass(frozen=True, slots=True)
class Base:
    """Variables of the role ``base``."""

    #: compilers, dkms and its headers' tools; fetching and trusting repositories; seeing cards, modules and their users
    packages: tuple[str, ...] = (
        "build-essential", "dkms", "curl", "ca-certificates", "gnupg", "pciutils", "kmod", "procps",
    )  # fmt: skip
    #: what unattended-upgrades leaves alone: beginnings of package names
    never_unattended: tuple[str, ...] = (
        "nvidia-", "libnvidia-", "cuda-", "libcudnn", "linux-image-", "linux-headers-", "linux-generic",
    )  # fmt: skip


@role()
def base(v: Base, host: Wanted) -> Iterator[Resource]:
    """The host can build a kernel module, and nothing but this stack ever brings a driver or a kernel to it."""
    yield FreeSpace(host.stack.requirements.free_bytes, host.shares())
    yield DpkgInOrder()

    yield File("/etc/apt/apt.conf.d/52hostwright", host.render("base/unattended.conf.j2", never=v.never_unattended))
    pinned = [name for name in DRIVER_PACKAGES if name != "libnvidia-*"]  # a glob would take the container toolkit's
    yield File("/etc/apt/preferences.d/hostwright-no-other-driver", host.render(PREFERENCES, packages=pinned))
    other = DebsAbsent(DRIVER_PACKAGES, "the driver comes from the .run, and two drivers break each other", NOT_DRIVER)
    yield Disturbing(other, "removes a driver", Answers(DRIVER_LOADED))
    yield Absent("/usr/lib/nvidia/alternate-install-present", "left by a distribution's driver; stops the installer")

    yield Debs(v.packages)
    yield KernelThere()
    yield KernelPackages()

    yield File(NOUVEAU_OFF, host.render("base/nouveau-off.conf.j2"), then=(UPDATE_INITRAMFS,))
    yield Initramfs(after=NOUVEAU_OFF)
    yield NouveauGone()
