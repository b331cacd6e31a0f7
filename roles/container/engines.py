"""Which releases of container engines read which CDI specifications.

To teach Hostwright a new engine or limit, add or change a row: refusals, findings and texts are computed from here.
"""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.roles import Pattern

Numbers = tuple[int, ...]  #: the parts of a version before Debian's own, such as (26, 1, 5)

_NUMBERS = Pattern(r"(?:[0-9]{1,9}:)?([0-9]{1,9}(?:\.[0-9]{1,9}){0,4}).*")


@dataclass(frozen=True, slots=True)
class CdiRow:
    """An engine, by its packages: the first release with CDI at all, and the first that reads specifications 0.7.0,
    which the container toolkit writes since 1.19.1."""

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

#: From 28.2.0 on Docker reads CDI specifications unless ``features.cdi`` forbids it, before only if that asks for it
#: (moby v28.2.0 cmd/dockerd/daemon.go: cdiEnabled).
CDI_BY_DEFAULT: Numbers = (28, 2)
#: From 29.2.0 on Docker's ``--gpus`` takes the devices of a CDI specification where one has them, before only the
#: toolkit's hook, which refuses to work in the modes cdi and jit-cdi (moby #50228, in docker-v29.2.0; container toolkit
#: cmd/nvidia-container-runtime-hook/hook_config.go: assertModeIsLegacy).
GPUS_BY_CDI: Numbers = (29, 2)
GPUS_SOURCE = "moby#50228; container toolkit cmd/nvidia-container-runtime-hook/hook_config.go"
ONLY_CDI = ("cdi", "jit-cdi")  #: modes in which the hook refuses ``--gpus``

#: The Docker of distributions that keep its release: ID and VERSION_ID → version (Debian's package lists). Ubuntu's
#: changes with updates, and is judged once it is installed.
DOCKER_OF = {
    ("debian", "11"): "20.10.5",
    ("debian", "12"): "20.10.24",
    ("debian", "13"): "26.1.5",
}


def numbers(version: str) -> Numbers:
    """The leading numbers of a version, without epoch and Debian's revision; empty if it has none.

    >>> numbers("5:29.7.2-1~debian.12~bookworm"), numbers("20.10.24+dfsg1-1+deb12u1"), numbers("unknown")
    ((29, 7, 2), (20, 10, 24), ())
    """
    match = _NUMBERS.fullmatch(version)
    return tuple(int(part) for part in match[1].split(".")) if match else ()


def dotted(parts: Numbers) -> str:
    """The numbers as text.

    >>> dotted((26, 1))
    '26.1'
    """
    return ".".join(map(str, parts))


def loses_gpus_flag(mode: str | None, docker: str) -> bool:
    """Whether ``docker run --gpus`` fails with this Docker in this mode of the toolkit; ``False`` if it is unknown."""
    return mode in ONLY_CDI and () < numbers(docker) < GPUS_BY_CDI


def gpus_flag_sentence(mode: str, docker: str) -> str:
    """What is wrong with such a Docker, and what to do."""
    return (
        f"Docker {docker} brings GPUs to `docker run --gpus` by the container toolkit's hook alone, which refuses to"
        f" work in the mode {mode}: set container.toolkit.mode to auto, or install Docker {dotted(GPUS_BY_CDI)} or"
        " newer (container.docker: docker-ce)"
    )
