"""The stack section of the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from hostwright.resources import CACHE
from hostwright.roles import (
    BOOT,
    WORK,
    ArtifactName,
    DebianVersion,
    ExactVersion,
    Kernels,
    Name,
    Section,
    Share,
    Stack,
    StackPart,
    taken,
)

#: Packages that are, or belong to, another NVIDIA driver: Debian's, Ubuntu's, NVIDIA's repository's.
DRIVER_PACKAGES = (
    "nvidia-driver*", "nvidia-headless-*", "nvidia-kernel-*", "nvidia-dkms-*", "nvidia-open*", "nvidia-firmware-*",
    "nvidia-utils-*", "nvidia-compute-utils-*", "nvidia-legacy-*", "nvidia-tesla-*", "nvidia-alternative*",
    "nvidia-installer-cleanup", "nvidia-smi", "nvidia-persistenced", "nvidia-modprobe", "nvidia-settings*",
    "nvidia-xconfig", "nvidia-prime", "nvidia-opencl-icd*", "nvidia-vdpau-driver", "nvidia-vulkan-*", "nvidia-egl-*",
    "glx-alternative-nvidia", "xserver-xorg-video-nvidia*", "cuda-drivers*", "libcuda1*", "libnvcuvid1", "libnvoptix1",
    "libgl1-nvidia-*", "libgles-nvidia*", "libegl-nvidia*", "libglx-nvidia*", "libnvidia-*",
    "linux-modules-nvidia-*", "linux-objects-nvidia-*", "linux-signatures-nvidia-*",
)  # fmt: skip

#: A package with such a name that is not a driver: the container toolkit's library.
NOT_DRIVER = ("libnvidia-container*",)


class FabricManager(StackPart):
    """NVIDIA Fabric Manager, for hosts with NVSwitches; always exactly the driver's version."""

    package: Name
    version: DebianVersion
    artifact: Annotated[str, ArtifactName]


class DriverSection(Section):
    """The driver's ``.run``. ``kernels`` are those that its module builds on; without it the rule table decides.

    ``module`` is the kind of its kernel module; ``auto`` takes the one that branch and cards need (``modules.py``).
    """

    vendor: ClassVar = "NVIDIA"

    version: ExactVersion
    module: Literal["auto", "open", "proprietary"] = "auto"
    artifact: Annotated[str, ArtifactName]
    kernels: Kernels | None = None
    fabric_manager: FabricManager | None = None

    @property
    def branch(self) -> str:
        """The driver's branch: ``470`` of 470.182.03."""
        return self.version.partition(".")[0]

    def versions(self) -> Mapping[str, str]:
        """The driver's version."""
        return {"driver": self.version}

    def leaving(self) -> tuple[str, ...]:
        """Another driver."""
        return (*(f"!{pattern}" for pattern in NOT_DRIVER), *DRIVER_PACKAGES)

    def shares(self, _stack: Stack, /) -> tuple[Share, ...]:
        """The installer unpacks where jobs work; nouveau is kept out of the initramfs."""
        places = {WORK: 5, "/usr": 5, CACHE: 1, "/var/lib/dkms": 1, BOOT: 0}
        return taken("the driver", "/usr/bin/nvidia-smi", places)
