"""Table of container engines by CDI support (``ENGINE_ROWS``), the source of refusals and findings."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.roles import Pattern

Numbers = tuple[int, ...]  #: version numbers without Debian's revision, such as (26, 1, 5)

_NUMBERS = Pattern(r"(?:[0-9]{1,9}:)?([0-9]{1,9}(?:\.[0-9]{1,9}){0,4}).*")


@dataclass(frozen=True, slots=True)
class CdiRow:
    """Container engine: packages, first release with CDI, and first release that reads CDI specifications 0.7.0.

    NVIDIA's container toolkit writes specifications of version 0.7.0 since its release 1.19.1.
    """

    engine: str
    packages: tuple[str, ...]
    first: Numbers
    reads_0_7: Numbers
    source: str


ENGINE_ROWS = (
    CdiRow(
        "Docker",
        ("docker.io", "docker-ce", "moby-engine"),
        (25, 0),
        (26, 1),
        "moby v25.0.0, v26.1.0 vendor/modules.txt; release notes of the container toolkit 1.19.1",
    ),
    CdiRow(
        "podman",
        ("podman",),
        (4, 1),
        (5, 1),
        "release notes of the container toolkit 1.19.1; NVIDIA/nvidia-container-toolkit#1940, #1853",
    ),
)

#: first Docker version that reads CDI specifications by default (moby v28.2.0 cmd/dockerd/daemon.go: cdiEnabled)
CDI_BY_DEFAULT: Numbers = (28, 2)
#: first Docker version whose ``--gpus`` can use a CDI specification (moby #50228)
GPUS_BY_CDI: Numbers = (29, 2)
GPUS_SOURCE = "moby#50228; container toolkit cmd/nvidia-container-runtime-hook/hook_config.go"
#: toolkit modes in which the toolkit's hook refuses ``--gpus`` (hook_config.go: assertModeIsLegacy)
ONLY_CDI = ("cdi", "jit-cdi")

#: (ID, VERSION_ID) of a distribution → version of its Docker package. Ubuntu changes the version with updates.
DOCKER_OF = {
    ("debian", "11"): "20.10.5",
    ("debian", "12"): "20.10.24",
    ("debian", "13"): "26.1.5",
}


def numbers(version: str) -> Numbers:
    """Return the numbers at the start of a version, without epoch and Debian revision; empty without numbers.

    >>> numbers("5:29.7.2-1~debian.12~bookworm"), numbers("20.10.24+dfsg1-1+deb12u1"), numbers("unknown")
    ((29, 7, 2), (20, 10, 24), ())
    """
    match = _NUMBERS.fullmatch(version)
    return tuple(int(part) for part in match[1].split(".")) if match else ()


def dotted(parts: Numbers) -> str:
    """Return the numbers of a version as text with dots.

    >>> dotted((26, 1))
    '26.1'
    """
    return ".".join(map(str, parts))


def loses_gpus_flag(mode: str | None, docker: str) -> bool:
    """Return whether ``docker run --gpus`` fails with Docker ``docker`` in toolkit mode ``mode``; ``False`` if
    unknown.
    """
    return mode in ONLY_CDI and () < numbers(docker) < GPUS_BY_CDI


def gpus_flag_sentence(mode: str, docker: str) -> str:
    """Return the error text that ``--gpus`` fails with Docker ``docker`` in toolkit mode ``mode``."""
    return (
        f"Docker {docker} runs `docker run --gpus` only through the container toolkit's hook, which refuses the mode"
        f" {mode}; set container.toolkit.mode to auto, or install Docker {dotted(GPUS_BY_CDI)} or newer"
        " (container.docker: docker-ce)"
    )
