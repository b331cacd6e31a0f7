"""Stack section ``driver``: version, source and parts of the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import model_validator

from hostwright.resources import CACHE, named_like
from hostwright.roles import (
    BOOT,
    WORK,
    AptRepository,
    ArtifactName,
    DebianVersion,
    ExactVersion,
    Kernels,
    Name,
    Pattern,
    Section,
    Share,
    Stack,
    StackPart,
    WithoutNulls,
    taken,
)
from hostwright.standard.roles.driver.modules import branch_of

#: name patterns of packages of any NVIDIA driver
DRIVER_PACKAGES = (
    "nvidia-driver*", "nvidia-headless-*", "nvidia-kernel-*", "nvidia-dkms-*", "nvidia-open*", "nvidia-firmware-*",
    "nvidia-utils-*", "nvidia-compute-utils-*", "nvidia-legacy-*", "nvidia-tesla-*", "nvidia-alternative*",
    "nvidia-installer-cleanup", "nvidia-smi", "nvidia-persistenced", "nvidia-modprobe", "nvidia-settings*",
    "nvidia-xconfig", "nvidia-prime", "nvidia-opencl-icd*", "nvidia-vdpau-driver", "nvidia-vulkan-*", "nvidia-egl-*",
    "glx-alternative-nvidia", "xserver-xorg-video-nvidia*", "cuda-drivers*", "libcuda1*", "libnvcuvid1", "libnvoptix1",
    "libgl1-nvidia-*", "libgles-nvidia*", "libegl-nvidia*", "libglx-nvidia*", "libnvidia-*",
    "linux-modules-nvidia-*", "linux-objects-nvidia-*", "linux-signatures-nvidia-*",
)  # fmt: skip

#: name patterns of container toolkit packages, which match ``DRIVER_PACKAGES`` but are not driver packages
NOT_DRIVER = ("libnvidia-container*",)

#: name prefix of NVIDIA's packages that pin a driver version or branch in apt's preferences
PINNING = "nvidia-driver-pinning-"

#: name patterns of packages whose version may differ from the driver's
_LOOSE = ("nvidia-modprobe", "nvidia-persistenced", "nvidia-settings", "nvidia-xconfig", f"{PINNING}*")
#: name patterns of packages with the open kernel module
OPEN_PACKAGES = ("nvidia-open*", "nvidia-kernel-open*", "nvidia-dkms-*-open", "linux-modules-nvidia-*-open*")
#: pattern of a Debian package version, with the driver version as a group
_UPSTREAM = Pattern(r"(?:[0-9]{1,4}:)?([0-9]{3}(?:\.[0-9]{1,9})+)(?:[-+~].{0,60})?")


#: first driver branch for which the names of NVIDIA's other packages, such as Fabric Manager, lack the branch number
_PLAIN_NAMES = 580


class DriverPart(StackPart):
    """Package beside the driver, such as IMEX, from a ``.deb`` (``artifact``) or from the source of the driver's
    packages.

    ``package``: package name, if it differs from NVIDIA's name for the driver's branch.
    """

    package: Name | None = None
    version: DebianVersion
    artifact: Annotated[str | None, ArtifactName] = None


class FabricManager(DriverPart):
    """NVIDIA Fabric Manager, for hosts with NVSwitches, in the version of the driver.

    ``subnet_manager`` (``nvlsm``) has its own versions and is installed only on NVLink 5 boards (HGX B200, B300).
    """

    subnet_manager: DriverPart | None = None


class DriverSection(Section):
    """Driver, installed from its ``.run`` (``artifact``) or from ``packages`` with exact versions.

    The packages come from ``repository``, or from ``components`` of the distribution's archive. ``precompiled``: name
    prefix of packages with a compiled and signed module, such as ``linux-modules-nvidia-580-server-open``. Such a
    module loads under Secure Boot.

    ``kernels``: kernels on which the module builds; default: the table of the compatibility rules. ``module``: kind of
    the kernel module; ``auto`` selects the kind for the branch and the GPUs, or the kind in the packages.
    """

    vendor: ClassVar = "NVIDIA"

    version: ExactVersion
    module: Literal["auto", "open", "proprietary"] = "auto"
    #: source of the driver; ``None``: the source whose fields the stack sets
    source: Literal["runfile", "packages"] | None = None
    artifact: Annotated[str, ArtifactName] | None = None
    packages: Annotated[Mapping[Name, DebianVersion], WithoutNulls] = {}
    precompiled: Name | None = None
    components: tuple[Name, ...] = ()
    repository: AptRepository | None = None
    kernels: Kernels | None = None
    fabric_manager: FabricManager | None = None
    #: package of IMEX, for compute trays of racks (GB200, GB300). These trays have no Fabric Manager.
    imex: DriverPart | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.artifact and self.packages:
            raise ValueError("the driver has both artifact and packages; set one to null")
        if not self.artifact and not self.packages:
            raise ValueError(
                "no driver is set; set artifact (the name of its .run file), or packages with exact versions"
            )
        named = "packages" if self.packages else "runfile"
        if self.source not in (None, named):
            raise ValueError(f"source is {self.source}, but the stack sets the {named}; set the {self.source} instead")
        if self.artifact and (self.components or self.repository or self.precompiled):
            raise ValueError(
                "`components`, `repository` and `precompiled` are only for a driver from packages, but this driver is "
                "a .run file; remove them"
            )
        if self.components and self.repository:
            raise ValueError("both repository and components are set; remove one")
        return self

    @model_validator(mode="after")
    def _parts_have_a_source(self) -> Self:
        manager = self.fabric_manager
        parts = {"fabric_manager": manager, "fabric_manager.subnet_manager": manager and manager.subnet_manager}
        for name, part in {**parts, "imex": self.imex}.items():
            if part and not part.artifact and not self.packages:
                raise ValueError(
                    f"{name} has no artifact, but the driver is a .run file; set artifact to the .deb of {name}"
                )
        return self

    @model_validator(mode="after")
    def _one_version(self) -> Self:
        found = {name: match[1] for name, text in self.packages.items() if (match := _UPSTREAM.fullmatch(text))}
        wrong = [name for name, text in found.items() if text != self.version and not named_like(name, _LOOSE)]
        if wrong or (self.packages and self.version not in found.values()):
            names = ", ".join(f"{name} {self.packages[name]}" for name in wrong) or "no package of this version"
            raise ValueError(
                f"the driver's version is {self.version}, but packages contain {names}; use the same version for "
                "all packages"
            )
        if self.packages and self.module not in ("auto", self.kind):
            raise ValueError(
                f"`module` is {self.module}, but `packages` contain the {self.kind} module; replace it with the "
                "package of the other module"
            )
        return self

    @property
    def renamed(self) -> bool:
        """Whether the packages are Debian's, which rename the module files to nvidia-current-open."""
        return "nvidia-alternative" in self.packages

    @property
    def kind(self) -> str:
        """Kind of the kernel module (``open`` or ``proprietary``) in the packages; for a ``.run``, the value of
        ``module``.
        """
        if not self.packages:
            return self.module
        names = (*self.packages, f"{self.precompiled}-")
        return "open" if any(named_like(name, OPEN_PACKAGES) for name in names) else "proprietary"

    @property
    def branch(self) -> str:
        """Branch of the driver's version: ``470`` for 470.182.03."""
        return self.version.partition(".")[0]

    @property
    def fabric_manager_package(self) -> str:
        return self._package("nvidia-fabricmanager", self.fabric_manager)

    @property
    def imex_package(self) -> str:
        """Name of the package of IMEX, the service for shared memory between the nodes of a rack."""
        return self._package("nvidia-imex", self.imex)

    def _package(self, name: str, part: DriverPart | None) -> str:
        by_branch = name if branch_of(self.version) >= _PLAIN_NAMES else f"{name}-{self.branch}"
        return (part and part.package) or by_branch

    def versions(self) -> Mapping[str, str]:
        return {"driver": self.version}

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(f"{name}={version}" for name, version in self.packages.items())

    @property
    def kept(self) -> tuple[str, ...]:
        """Name patterns of packages that stay installed although they match ``DRIVER_PACKAGES``."""
        return (*NOT_DRIVER, *self.packages, *(f"{name}-[0-9]*" for name in self.precompiled_names))

    @property
    def precompiled_names(self) -> tuple[str, ...]:
        """Package names of a precompiled module, without the kernel release at the end."""
        if not self.precompiled:
            return ()
        objects = self.precompiled.replace("linux-modules-", "linux-objects-", 1)
        return (self.precompiled, objects, "linux-signatures-nvidia")

    def leaving(self) -> tuple[str, ...]:
        return (*(f"!{pattern}" for pattern in self.kept), *DRIVER_PACKAGES)

    def never_unattended(self) -> tuple[str, ...]:
        """Return name patterns of packages that unattended-upgrades must not upgrade.

        After an upgrade, the loaded module would no longer match the libraries.
        """
        return (*(f"{name}$" for name in self.packages), *(f"{name}-[0-9]" for name in self.precompiled_names))

    def shares(self, _stack: Stack, /) -> tuple[Share, ...]:
        """Return the disk space for the driver with the installer's work directory, and the space in /boot for a new
        initramfs.
        """
        places = {WORK: 5, "/usr": 5, CACHE: 1, "/var/lib/dkms": 1, BOOT: 0}
        if self.packages:
            places = {"/usr": 2, "/var/cache/apt": 1, "/var/lib/dkms": 1, BOOT: 0}
        return taken("the driver", "/usr/bin/nvidia-smi", places)
