"""The stack section of the driver."""

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

#: NVIDIA's package of apt preferences for its repository, whose names carry no branch since R580; its name ends with a
#: driver's version or branch.
PINNING = "nvidia-driver-pinning-"

#: Packages of a set whose version may be another than the driver's: they load modules and set modes, and nothing more.
_LOOSE = ("nvidia-modprobe", "nvidia-persistenced", "nvidia-settings", "nvidia-xconfig", f"{PINNING}*")
#: Packages that bring the open kernel module.
OPEN_PACKAGES = ("nvidia-open*", "nvidia-kernel-open*", "nvidia-dkms-*-open", "linux-modules-nvidia-*-open*")
_UPSTREAM = Pattern(r"(?:[0-9]{1,4}:)?([0-9]{3}(?:\.[0-9]{1,9})+)(?:[-+~].{0,60})?")  #: a driver's, in a package's


#: From this branch on, the names of packages beside the driver end with the driver's branch no more.
_PLAIN_NAMES = 580


class DriverPart(StackPart):
    """A package beside the driver: a ``.deb`` (``artifact``), or from where the driver's packages come.

    ``package`` is its name where that is another than NVIDIA's for the driver's branch.
    """

    package: Name | None = None
    version: DebianVersion
    artifact: Annotated[str | None, ArtifactName] = None


class FabricManager(DriverPart):
    """NVIDIA Fabric Manager, for hosts with NVSwitches; always exactly the driver's version.

    ``subnet_manager`` (``nvlsm``) has versions of its own, and only boards with NVLink 5 (HGX B200, B300) get it.
    """

    subnet_manager: DriverPart | None = None


class DriverSection(Section):
    """The driver, from its ``.run`` (``artifact``) or from ``packages``: the whole set, each at an exact version.

    With ``precompiled`` (Ubuntu's ``linux-modules-nvidia-580-server-open``) the module comes compiled and signed for
    the running kernel, in a package of that name and the kernel's; it loads under Secure Boot, and nothing is built.
    ``kernels`` are those that its module builds on; without it the rule table decides. ``module`` is the kind of its
    kernel module; ``auto`` takes the one that branch and cards need (``modules.py``), and of a set the one that it has.
    Packages come from ``repository``, or from these ``components`` of the distribution's own archive.
    """

    vendor: ClassVar = "NVIDIA"

    version: ExactVersion
    module: Literal["auto", "open", "proprietary"] = "auto"
    source: Literal["runfile", "packages"] | None = None  #: ``None``: whichever of the two the stack names
    artifact: Annotated[str, ArtifactName] | None = None
    packages: Annotated[Mapping[Name, DebianVersion], WithoutNulls] = {}
    precompiled: Name | None = None
    components: tuple[Name, ...] = ()
    repository: AptRepository | None = None
    kernels: Kernels | None = None
    fabric_manager: FabricManager | None = None
    imex: DriverPart | None = None  #: for the compute trays of racks (GB200, GB300), which have no Fabric Manager

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.artifact and self.packages:
            raise ValueError("the driver comes from artifact or from packages, and both are named; set one to null")
        if not self.artifact and not self.packages:
            raise ValueError("no driver: name its .run (artifact), or packages with their exact versions")
        named = "packages" if self.packages else "runfile"
        if self.source not in (None, named):
            raise ValueError(f"source is {self.source}, and the stack names the {named}; name {self.source}'s instead")
        if self.artifact and (self.components or self.repository or self.precompiled):
            raise ValueError("components, repository and precompiled are for packages; the driver comes from its .run")
        if self.components and self.repository:
            raise ValueError("packages come from a repository or from components of the distribution's; name one")
        return self

    @model_validator(mode="after")
    def _parts_have_a_source(self) -> Self:
        manager = self.fabric_manager
        parts = {"fabric_manager": manager, "fabric_manager.subnet_manager": manager and manager.subnet_manager}
        for name, part in {**parts, "imex": self.imex}.items():
            if part and not part.artifact and not self.packages:
                raise ValueError(f"{name} has no artifact, and the driver comes from its .run; name the .deb of {name}")
        return self

    @model_validator(mode="after")
    def _one_version(self) -> Self:
        found = {name: match[1] for name, text in self.packages.items() if (match := _UPSTREAM.fullmatch(text))}
        wrong = [name for name, text in found.items() if text != self.version and not named_like(name, _LOOSE)]
        if wrong or (self.packages and self.version not in found.values()):
            names = ", ".join(f"{name} {self.packages[name]}" for name in wrong) or "no package of that version"
            raise ValueError(f"driver {self.version}, and packages has {names}; all parts must be one version")
        if self.packages and self.module not in ("auto", self.kind):
            raise ValueError(f"module is {self.module}, and packages bring the {self.kind} one; name the other package")
        return self

    @property
    def renamed(self) -> bool:
        """Whether the set is Debian's, whose modules have names of their own on the disk (nvidia-current-open)."""
        return "nvidia-alternative" in self.packages

    @property
    def kind(self) -> str:
        """The kind of kernel module: that of the set of packages, else ``module``."""
        if not self.packages:
            return self.module
        names = (*self.packages, f"{self.precompiled}-")
        return "open" if any(named_like(name, OPEN_PACKAGES) for name in names) else "proprietary"

    @property
    def branch(self) -> str:
        """The driver's branch: ``470`` of 470.182.03."""
        return self.version.partition(".")[0]

    @property
    def fabric_manager_package(self) -> str:
        """The name of Fabric Manager's package."""
        return self._package("nvidia-fabricmanager", self.fabric_manager)

    @property
    def imex_package(self) -> str:
        """The name of the package of the service for memory that a rack's nodes share."""
        return self._package("nvidia-imex", self.imex)

    def _package(self, name: str, part: DriverPart | None) -> str:
        by_branch = name if branch_of(self.version) >= _PLAIN_NAMES else f"{name}-{self.branch}"
        return (part and part.package) or by_branch

    def versions(self) -> Mapping[str, str]:
        """The driver's version."""
        return {"driver": self.version}

    @property
    def words(self) -> tuple[str, ...]:
        """The packages as ``name=version``."""
        return tuple(f"{name}={version}" for name, version in self.packages.items())

    @property
    def kept(self) -> tuple[str, ...]:
        """Patterns of the packages that stay although their names are a driver's."""
        return (*NOT_DRIVER, *self.packages, *(f"{name}-[0-9]*" for name in self.precompiled_names))

    @property
    def precompiled_names(self) -> tuple[str, ...]:
        """The names, without that of a kernel, of the packages that a precompiled module is made of."""
        if not self.precompiled:
            return ()
        objects = self.precompiled.replace("linux-modules-", "linux-objects-", 1)
        return (self.precompiled, objects, "linux-signatures-nvidia")

    def leaving(self) -> tuple[str, ...]:
        """Another driver."""
        return (*(f"!{pattern}" for pattern in self.kept), *DRIVER_PACKAGES)

    def never_unattended(self) -> tuple[str, ...]:
        """The set of packages: a library that moves under a loaded module is the most frequent failure of all."""
        return (*(f"{name}$" for name in self.packages), *(f"{name}-[0-9]" for name in self.precompiled_names))

    def shares(self, _stack: Stack, /) -> tuple[Share, ...]:
        """The installer unpacks where jobs work; nouveau is kept out of the initramfs."""
        places = {WORK: 5, "/usr": 5, CACHE: 1, "/var/lib/dkms": 1, BOOT: 0}
        if self.packages:
            places = {"/usr": 2, "/var/cache/apt": 1, "/var/lib/dkms": 1, BOOT: 0}
        return taken("the driver", "/usr/bin/nvidia-smi", places)
