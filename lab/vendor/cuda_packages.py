"""Packages of NVIDIA's CUDA 11.2.2 local repository, and the Debian package that each file comes from.

Names, versions and dependencies follow NVIDIA's `Packages` files of the 11.x series. Left out, because nothing here
uses them: graphical tools, samples, NPP, nvJPEG, cuSOLVER Mg and static math libraries.
"""

from __future__ import annotations

from dataclasses import dataclass

RELEASE = "11.2.2"
DRIVER = "460.32.03"  #: the driver that this release bundles and that `cuda-11-2` depends on
TOOLS = "11.2.152"  #: version of nvcc, cudart and other small parts; it differs between 11.2.0, 11.2.1 and 11.2.2

HOME = "usr/local/cuda-11.2"
LIB = f"{HOME}/targets/x86_64-linux/lib"
INCLUDE = f"{HOME}/targets/x86_64-linux/include"

TOOLKIT = "nvidia-cuda-toolkit"  # Debian packages with most of the files
DEV = "nvidia-cuda-dev"
_LIBS = "usr/lib/x86_64-linux-gnu"


@dataclass(frozen=True, slots=True)
class Take:
    """Files of a Debian package that are copied to one directory; `**` at the end copies a tree with its structure."""

    debian: str
    pattern: str
    into: str


@dataclass(frozen=True, slots=True)
class Library:
    """A shared library: `stem`.so.`version`, with a link for its soname."""

    debian: str
    stem: str
    soname: str
    version: str
    into: str = LIB

    @property
    def file_name(self) -> str:
        """Name of the real file."""
        return f"{self.stem}.so.{self.version}"

    @property
    def soname_link(self) -> str:
        """File name that the dynamic loader opens."""
        return f"{self.stem}.so.{self.soname}"


@dataclass(frozen=True, slots=True)
class Package:
    """One package of the repository. In the small profile, `math` packages are stand-ins."""

    name: str
    version: str
    summary: str
    depends: tuple[str, ...] = ()
    takes: tuple[Take, ...] = ()
    libraries: tuple[Library, ...] = ()
    develops: tuple[Library, ...] = ()  #: libraries with an unversioned link for the linker
    math: bool = False
    driver: bool = False  #: a driver package, which must never be installed beside a `.run` driver

    @property
    def meta(self) -> bool:
        """Whether the package has only dependencies."""
        return not (self.takes or self.libraries or self.develops)


def _tools(*names: str) -> tuple[Take, ...]:
    return tuple(Take(TOOLKIT, f"usr/bin/{name}", f"{HOME}/bin") for name in names)


def _library(debian: str, stem: str, soname: str, version: str, into: str = LIB) -> Library:
    return Library(debian, stem, soname, version, into)


CUDART = _library("libcudart11.0", "libcudart", "11.0", TOOLS)
NVRTC = (
    _library("libnvrtc11.2", "libnvrtc", "11.2", TOOLS),
    _library("libnvrtc11.2", "libnvrtc-builtins", "11.2", TOOLS),
)
NVTX = _library("libnvtoolsext1", "libnvToolsExt", "1", "1.0.0")
CUPTI = _library("libcupti11.2", "libcupti", "11.2", "2020.3.1", f"{HOME}/extras/CUPTI/lib64")
NVVM = _library("libnvvm4", "libnvvm", "4", "4.0.0", f"{HOME}/nvvm/lib64")

#: package stem → (version, summary, libraries, headers)
_MATH: dict[str, tuple[str, str, tuple[Library, ...], tuple[str, ...]]] = {
    "libcublas": (
        "11.4.1.1043",
        "CUBLAS",
        (
            _library("libcublas11", "libcublas", "11", "11.4.1.1043"),
            _library("libcublaslt11", "libcublasLt", "11", "11.4.1.1043"),
        ),
        ("cublas*.h",),
    ),
    "libcufft": (
        "10.4.1.152",
        "CUFFT",
        (_library("libcufft10", "libcufft", "10", "10.4.1.152"),),
        ("cufft.h", "cufftXt.h", "cudalibxt.h"),
    ),
    "libcurand": ("10.2.3.152", "CURAND", (_library("libcurand10", "libcurand", "10", "10.2.3.152"),), ("curand*.h",)),
    "libcusolver": (
        "11.1.0.152",
        "CUSOLVER",
        (_library("libcusolver11", "libcusolver", "11", "11.1.0.152"),),
        ("cusolverDn.h", "cusolverRf.h", "cusolverSp*.h", "cusolver_common.h"),
    ),
    "libcusparse": (
        "11.4.1.1152",
        "CUSPARSE",
        (_library("libcusparse11", "libcusparse", "11", "11.4.1.1152"),),
        ("cusparse*.h",),
    ),
}


def _math() -> tuple[Package, ...]:
    """Return the runtime and the development package of each math library."""
    packages = []
    for stem, (version, summary, libraries, headers) in _MATH.items():
        takes = tuple(Take(DEV, f"usr/include/{header}", INCLUDE) for header in headers)
        name, title = f"{stem}-11-2", f"{summary} native runtime libraries"
        packages.append(Package(name, f"{version}-1", title, libraries=libraries, math=True))
        packages.append(
            Package(
                f"{stem}-dev-11-2",
                f"{version}-1",
                f"{summary} headers",
                depends=(f"{name} (>= {version})",),
                takes=takes,
                develops=libraries,
            )
        )
    return tuple(packages)


_PARTS = (
    Package(
        "cuda-nvcc-11-2",
        f"{TOOLS}-1",
        "CUDA nvcc",
        takes=(
            *_tools("bin2c", "cudafe++", "fatbinary", "nvlink", "ptxas", "cu++filt"),
            Take(TOOLKIT, "usr/lib/nvidia-cuda-toolkit/bin/nvcc", f"{HOME}/bin"),
            Take(TOOLKIT, "usr/lib/nvidia-cuda-toolkit/bin/crt/*", f"{HOME}/bin/crt"),
            Take(TOOLKIT, "usr/lib/nvidia-cuda-toolkit/bin/cicc", f"{HOME}/nvvm/bin"),
            Take(TOOLKIT, "usr/lib/nvidia-cuda-toolkit/libdevice/libdevice.10.bc", f"{HOME}/nvvm/libdevice"),
            Take(TOOLKIT, "usr/include/nvvm.h", f"{HOME}/nvvm/include"),
        ),
        libraries=(NVVM,),
        develops=(NVVM,),
    ),
    Package("cuda-cuobjdump-11-2", f"{TOOLS}-1", "CUDA cuobjdump", takes=_tools("cuobjdump")),
    Package("cuda-nvprune-11-2", f"{TOOLS}-1", "CUDA nvprune", takes=_tools("nvprune")),
    Package("cuda-nvdisasm-11-2", f"{TOOLS}-1", "CUDA disassembler", takes=_tools("nvdisasm")),
    Package("cuda-memcheck-11-2", f"{TOOLS}-1", "CUDA-MEMCHECK", takes=_tools("cuda-memcheck")),
    Package("cuda-cudart-11-2", f"{TOOLS}-1", "CUDA Runtime native libraries", libraries=(CUDART,)),
    Package("cuda-nvrtc-11-2", f"{TOOLS}-1", "NVRTC native runtime libraries", libraries=NVRTC),
    Package(
        "cuda-nvrtc-dev-11-2",
        f"{TOOLS}-1",
        "NVRTC headers",
        depends=(f"cuda-nvrtc-11-2 (>= {TOOLS})",),
        takes=(Take(DEV, "usr/include/nvrtc.h", INCLUDE),),
        develops=NVRTC,
    ),
    Package(
        "cuda-nvtx-11-2",
        f"{TOOLS}-1",
        "NVIDIA Tools Extension",
        takes=(Take(DEV, "usr/include/nvToolsExt*.h", INCLUDE), Take(DEV, "usr/include/nvtx3/**", INCLUDE)),
        libraries=(NVTX,),
        develops=(NVTX,),
    ),
    Package("cuda-cupti-11-2", f"{TOOLS}-1", "CUDA profiling tools runtime libs.", libraries=(CUPTI,)),
    Package(
        "cuda-cupti-dev-11-2",
        f"{TOOLS}-1",
        "CUDA profiling tools interface.",
        depends=(f"cuda-cupti-11-2 (>= {TOOLS})",),
        takes=(Take("libcupti-dev", "usr/include/**", f"{HOME}/extras/CUPTI/include"),),
        develops=(CUPTI,),
    ),
    Package(
        "cuda-nvml-dev-11-2",
        f"{TOOLS}-1",
        "NVML native dev links, headers",
        takes=(
            Take("libnvidia-ml-dev", "usr/include/nvml.h", INCLUDE),
            Take(DEV, f"{_LIBS}/stubs/libnvidia-ml.so", f"{LIB}/stubs"),
        ),
    ),
    Package(
        "cuda-driver-dev-11-2",
        f"{TOOLS}-1",
        "CUDA Driver native dev stub library",
        takes=(Take(DEV, f"{_LIBS}/stubs/libcuda.so", f"{LIB}/stubs"),),
    ),
    *_math(),
    # The last package with headers: it contains all headers that the packages above do not.
    Package(
        "cuda-cudart-dev-11-2",
        f"{TOOLS}-1",
        "CUDA Runtime native dev links, headers",
        depends=(f"cuda-cudart-11-2 (>= {TOOLS})", f"cuda-driver-dev-11-2 (>= {TOOLS})"),
        takes=(
            Take(DEV, f"{_LIBS}/libcudart_static.a", LIB),
            Take(DEV, f"{_LIBS}/libcudadevrt.a", LIB),
            Take(DEV, f"{_LIBS}/libculibos.a", LIB),
            Take(DEV, "usr/include/**", INCLUDE),
        ),
        develops=(CUDART,),
    ),
)


def _meta(name: str, summary: str, *depends: str, version: str = RELEASE) -> Package:
    return Package(name, f"{version}-1", summary, depends=depends)


def _all(version: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{name}-11-2 (>= {version})" for name in names)


_METAS = (
    _meta("cuda-compiler-11-2", "CUDA compiler", *_all(TOOLS, "cuda-cuobjdump", "cuda-nvcc", "cuda-nvprune")),
    _meta(
        "cuda-command-line-tools-11-2",
        "CUDA command-line tools",
        *_all(TOOLS, "cuda-cupti-dev", "cuda-memcheck", "cuda-nvdisasm", "cuda-nvtx"),
    ),
    _meta("cuda-tools-11-2", "CUDA Tools meta-package", *_all(RELEASE, "cuda-command-line-tools")),
    _meta(
        "cuda-libraries-11-2",
        "CUDA Libraries 11.2 meta-package",
        *_all(TOOLS, "cuda-cudart", "cuda-nvrtc"),
        *(f"{stem}-11-2 (>= {version})" for stem, (version, *_) in _MATH.items()),
    ),
    _meta(
        "cuda-libraries-dev-11-2",
        "CUDA Libraries 11.2 development meta-package",
        *_all(TOOLS, "cuda-cudart-dev", "cuda-driver-dev", "cuda-nvrtc-dev"),
        *(f"{stem}-dev-11-2 (>= {version})" for stem, (version, *_) in _MATH.items()),
    ),
    _meta(
        "cuda-toolkit-11-2",
        "CUDA Toolkit 11.2 meta-package",
        *_all(RELEASE, "cuda-compiler", "cuda-libraries", "cuda-libraries-dev", "cuda-tools"),
        *_all(TOOLS, "cuda-nvml-dev"),
    ),
    # Driver dependencies: what `apt-get install cuda` or `cuda-11-2` would install in addition.
    _meta(
        "cuda-runtime-11-2",
        "CUDA Runtime 11.2 meta-package",
        f"cuda-libraries-11-2 (>= {RELEASE})",
        f"cuda-drivers (>= {DRIVER})",
    ),
    _meta("cuda-demo-suite-11-2", "Demo suite for CUDA", f"cuda-runtime-11-2 (>= {RELEASE})", version=TOOLS),
    _meta(
        "cuda-11-2",
        "CUDA 11.2 meta-package",
        *_all(RELEASE, "cuda-runtime", "cuda-toolkit"),
        f"cuda-demo-suite-11-2 (>= {TOOLS})",
    ),
    _meta("cuda", "CUDA meta-package", f"cuda-11-2 (>= {RELEASE})"),
)

_UBUNTU = f"{DRIVER}-0ubuntu1"
_DRIVER_LIBRARIES = ("cfg1", "compute", "decode", "encode", "extra", "fbc1", "gl", "ifr1")
_DRIVER_PARTS = (
    *(f"libnvidia-{part}-460" for part in _DRIVER_LIBRARIES),
    "libnvidia-common-460",
    *(f"nvidia-{part}-460" for part in ("compute-utils", "dkms", "kernel-common", "kernel-source", "utils")),
    "xserver-xorg-video-nvidia-460",
)


def _driver() -> tuple[Package, ...]:
    """Return the driver packages of NVIDIA's repository: names only."""

    def part(name: str, version: str, *depends: str) -> Package:
        return Package(name, version, "NVIDIA driver 460, by package", depends=depends, driver=True)

    return (
        part("cuda-drivers", f"{DRIVER}-1", f"cuda-drivers-460 (= {DRIVER}-1)"),
        part("cuda-drivers-460", f"{DRIVER}-1", f"nvidia-driver-460 (>= {DRIVER})"),
        part("nvidia-driver-460", _UBUNTU, *(f"{name} (= {_UBUNTU})" for name in _DRIVER_PARTS)),
        *(part(name, _UBUNTU) for name in _DRIVER_PARTS),
    )


PACKAGES: tuple[Package, ...] = (*_PARTS, *_METAS, *_driver())
