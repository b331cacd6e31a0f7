"""Python environments with CUDA libraries in wheels, and the drivers and GPUs that these wheels support."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hostwright.resources import EnvironmentSection, Recipe
from hostwright.roles import Misfit, Pattern, version
from hostwright.standard.roles.cuda.rules import CUBIN_FLOORS, CUBIN_TABLE
from hostwright.standard.roles.driver.chips import chips

#: CUDA series → oldest driver that compiles PTX of the series (CUDA release notes)
PTX_FLOORS = {"11.8": "520.61.05", "12.2": "535.54.03", "12.3": "545.23.06", "12.5": "555.42.02"}

#: shell command that runs a program with a login shell's LD_LIBRARY_PATH. Fields: interpreter, and text of the program.
LOGIN_SHELL = 'env -i HOME="$HOME" USER="$(id -un)" TERM=dumb /bin/bash -l -c \'exec "$@"\' bash %s -c %s'
#: Python code that sets ``opened`` to the open libraries of the program
OPENED = """
import os, sys
with open("/proc/self/maps") as maps:
    opened = sorted({line.split(None, 5)[5].strip() for line in maps if ".so" in line and line.count("/")})
opened = {"opened": opened, "prefix": os.path.realpath(sys.prefix)}
"""
_LIBRARIES = ("libcublas", "libcudnn", "libcudart", "libnccl", "libnvJitLink", "libcusparse", "libcufft", "libcurand")

_SUFFIXED = Pattern(r"nvidia-[a-z0-9-]+-cu([0-9]{2})|jax-cuda([0-9]{2})-(?:plugin|pjrt)|cupy-cuda([0-9]{2})x")
#: wheels whose major version equals the major version of CUDA
_VERSIONED = {"cuda-toolkit", "nvidia-cuda-runtime", "nvidia-cuda-nvrtc", "nvidia-cuda-cupti", "nvidia-nvjitlink"}


@dataclass(frozen=True, slots=True)
class Codes:
    """GPU code in a wheel: compute capabilities with compiled code, and capability of the PTX.

    ``newest``: newest capability on which the PTX was found to work.
    """

    compiled: tuple[tuple[int, int], ...]
    ptx: tuple[int, int] | None = None
    newest: tuple[int, int] | None = None

    def compiled_for(self, capability: tuple[int, int]) -> bool:
        """Return whether compiled code exists for the major version of ``capability``, with the same or a lower minor
        version.
        """
        return any(major == capability[0] and minor <= capability[1] for major, minor in self.compiled)

    def runs_on(self, capability: tuple[int, int]) -> bool:
        by_ptx = self.ptx is not None and self.ptx <= capability and (self.newest is None or capability <= self.newest)
        return by_ptx or self.compiled_for(capability)

    @property
    def span(self) -> str:
        """Supported GPUs as text, such as ``compute capability 6.0 to 9.0``."""
        oldest = min(self.compiled)
        newest = max((*self.compiled, self.newest or self.ptx or oldest))
        above = "and up" if self.ptx and not self.newest else f"to {'.'.join(map(str, newest))}"
        return f"compute capability {'.'.join(map(str, oldest))} {above}"


def capabilities(text: str) -> tuple[tuple[int, int], ...]:
    """Parse compute capabilities, separated by spaces.

    >>> capabilities("7.5 12.0")
    ((7, 5), (12, 0))
    """
    return tuple((version(word).major, version(word).minor) for word in text.split())


def python_range(first: int, last: int) -> tuple[str, ...]:
    """Return the Python versions from 3.``first`` to 3.``last``.

    >>> python_range(9, 11)
    ('3.9', '3.10', '3.11')
    """
    return tuple(f"3.{minor}" for minor in range(first, last + 1))


def usable_pythons(section: EnvironmentSection) -> tuple[str, ...]:
    """Return the Python versions for an environment, as options of a ``Choice``."""
    return section.usable


def has_code(
    title: str, codes: Codes | None, gpus: tuple[tuple[int, int], ...], rule: str, source: str
) -> Misfit | None:
    """Check that the wheel ``title`` has code, compiled or as PTX, for every GPU. GPUs with unknown chips pass."""
    for chip in chips(gpus) if codes else ():
        if codes and not codes.runs_on(chip.capability):
            own = ".".join(map(str, chip.capability))
            return Misfit(
                rule, f"{title} has code for {codes.span}, but {chip.name} has compute capability {own}", source
            )
    return None


def runs_on_the_driver(title: str, cuda: str, driver: str) -> Misfit | None:
    """Check that ``driver`` is new enough for ``cuda``, the CUDA version of the wheels in ``title``."""
    floor = CUBIN_FLOORS.get(cuda.partition(".")[0])
    if floor is None or version(driver) >= version(floor):
        return None
    sentence = f"{title} contains CUDA {cuda}, which needs driver {floor} or newer. The stack has {driver}"
    return Misfit("wheels-driver", sentence, CUBIN_TABLE)


def cuda_of(pins: Mapping[str, str]) -> Mapping[str, str]:
    """Return major version of CUDA → a pinned wheel with this CUDA.

    >>> dict(cuda_of({"nvidia-cudnn-cu12": "9.10.2.21", "nvidia-cuda-runtime": "13.0.96", "numpy": "2.4.0"}))
    {'12': 'nvidia-cudnn-cu12 9.10.2.21', '13': 'nvidia-cuda-runtime 13.0.96'}
    """
    found: dict[str, str] = {}
    for name, release in pins.items():
        match = _SUFFIXED.fullmatch(name)
        major = (match[1] or match[2] or match[3] or "") if match else ""
        if not major and name in _VERSIONED:
            major = release.partition(".")[0]
        if major and not release.startswith("0.0."):
            found.setdefault(major, f"{name} {release}")
    return found


# The search for compatible versions calls ``_pinned`` hundreds of times.
@lru_cache(maxsize=64)
def _pinned(constraints: str, python: str) -> Mapping[str, str]:
    if not _may_name_cuda(constraints):
        return {}
    return cuda_of(Recipe("", python, "", constraints).pins)


def _may_name_cuda(constraints: str) -> bool:
    text = constraints.lower()
    return "nvidia" in text or "cuda" in text


def brings_cuda(section: EnvironmentSection) -> bool:
    """Return whether pinned wheels of the environment contain CUDA."""
    return any(_pinned(section.constraints.get(python, ""), python) for python in section.usable)


def opened_elsewhere(look: Mapping[str, Any]) -> list[str]:
    """Return the CUDA libraries in ``look["opened"]`` outside the environment ``look["prefix"]``.

    >>> opened_elsewhere({"prefix": "/opt/jax", "opened": ["/opt/jax/libcudart.so.13", "/usr/lib/libcublas.so.13"]})
    ['/usr/lib/libcublas.so.13']
    """
    ours = f"{look['prefix']}/"
    named = (path for path in look["opened"] if path.rpartition("/")[2].startswith(_LIBRARIES))
    return [path for path in named if not path.startswith(ours)]


def major_of(section: EnvironmentSection) -> str:
    """Return the major version of CUDA in the wheels for the first usable Python; empty without CUDA."""
    return next(iter(_pinned(section.constraints.get(section.usable[0], ""), section.usable[0])), "")


def pins_of(section: EnvironmentSection) -> Mapping[str, str]:
    """Return name → version of the packages pinned for the first usable Python."""
    return section.pins(section.usable[0])


def libraries_in(section: EnvironmentSection) -> str:
    """Return name and version of a pinned wheel with CUDA libraries; empty if the host's libraries are used."""
    pythons = (python for python in section.usable if _may_name_cuda(section.constraints.get(python, "")))
    pins = (pin for python in pythons for pin in section.pins(python).items())
    return next((f"{name} {release}" for name, release in pins if name.startswith("nvidia-")), "")


def libraries_of(section: EnvironmentSection) -> tuple[str, ...]:
    """Return the wheels of cuDNN and NCCL, for comparisons in an audit; empty without CUDA."""
    major = major_of(section)
    return tuple(f"nvidia-{library}-cu{major}" for library in ("cudnn", "nccl") if major)


def one_cuda(section: EnvironmentSection) -> Iterator[Misfit]:
    """Check that the environment has wheels for at most one major version of CUDA.

    Wheels such as cuDNN's contain the same files for both versions, and the later wheel overwrites the other.
    """
    for python in section.usable:
        found = _pinned(section.constraints.get(python, ""), python)
        if len(found) > 1:
            named = " and ".join(f"{wheel} (CUDA {major})" for major, wheel in sorted(found.items()))
            yield Misfit(
                "cuda-wheels-mixed",
                f"{section.stem}.constraints for Python {python} pin {named}. These wheels contain the same "
                "files, such as nvidia/cudnn/lib/libcudnn.so.9, and overwrite each other",
                "the file lists of nvidia-cudnn-cu12 and -cu13, measured",
                "two environments, one for each CUDA",
            )
