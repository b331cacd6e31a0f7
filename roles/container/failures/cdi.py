"""CDI specifications of another driver, with other numbers than the kernel has, or newer than an engine reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, ForPeople, Sign
from hostwright.resources import DPKG, Probe
from hostwright.roles import Pattern
from hostwright.standard.roles.container.cdi import CDI_SH, REFRESH
from hostwright.standard.roles.container.engines import ENGINE_ROWS, dotted, numbers

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

CDI = Probe(f"{CDI_SH}cdi_all", root=True)  # some sites keep them for root alone
NEW = (0, 7)  #: the version from which on engines of some years ago read no specification
_SPEC = r"(/(?:etc|var/run)/cdi/[^ ]+)"
_MISSING = Pattern(rf"missing {_SPEC} (/.+)")
_NUMBER = Pattern(rf"number {_SPEC} (/dev/[^ ]+) ([0-9]{{1,9}}) ([0-9]{{1,9}})")
_VERSION = Pattern(rf"version {_SPEC} ([0-9][0-9.]{{0,20}})")


def stale(ctx: AuditContext) -> Iterator[str]:
    """A CDI specification of NVIDIA's in /etc/cdi or /var/run/cdi names files that are not on the host."""
    for line in ctx.text(CDI).splitlines():
        if match := _MISSING.fullmatch(line):
            yield f"{match[1]} names {match[2]}, which is not there"


def other_numbers(ctx: AuditContext) -> Iterator[str]:
    """A CDI specification of NVIDIA's has another major number for a device file than /proc/devices has for its
    driver."""
    for line in ctx.text(CDI).splitlines():
        if match := _NUMBER.fullmatch(line):
            yield f"{match[1]} has {match[3]} as the major number of {match[2]}, and the kernel {match[4]}"


def too_new(ctx: AuditContext) -> Iterator[str]:
    """A CDI specification of NVIDIA's is of the version 0.7.0 or newer, and an installed engine has CDI and does not
    read that yet: Docker before 26.1, podman before 5.1."""
    lines = [match for line in ctx.text(CDI).splitlines() if (match := _VERSION.fullmatch(line))]
    newer = [match for match in lines if numbers(match[2]) >= NEW]
    for row in ENGINE_ROWS:
        packages = (ctx.packages.get(name) for name in row.packages)
        for package in packages:
            if newer and package and package.present and row.first <= numbers(package.version) < row.reads_0_7:
                yield f"{newer[0][1]} is of version {newer[0][2]}, and {package.name} is {package.version}"


def _readers() -> str:
    """The engines that read specifications 0.7.0, in words."""
    return ", ".join(f"{row.engine} {dotted(row.reads_0_7)}" for row in ENGINE_ROWS)


CDI_RULES = (
    FailureRule(
        "cdi-stale",
        r"(?:error stat'ing file|cannot stat|error mounting) .{0,4}/[^\n]{0,200}(?:nvidia|libcuda)[^\n]*"
        r"no such file or directory",
        "a CDI specification names files of a driver that is not on the host any more: it was made before the driver"
        " was replaced, and no container starts that asks for its devices",
        f"Make it anew: systemctl restart {REFRESH} (before toolkit 1.18: nvidia-ctk cdi generate"
        " --output=/etc/cdi/nvidia.yaml); remove copies of it in /etc/cdi, over which those in /var/run/cdi win",
        "CDI specification; Igalia/webkit-container-sdk#23",
        sign=Sign("container", stale, (CDI,)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "cdi-numbers",
        "",
        "a CDI specification has device numbers of an earlier boot: nvidia-smi works in its containers, and CUDA ends"
        " with CUDA_ERROR_UNKNOWN (cuInit 999), as /dev/nvidia-uvm leads nowhere there. The container toolkit writes"
        " numbers since 1.19.0, and nvidia-uvm gets another one whenever its module is loaded",
        f"Make it anew (systemctl restart {REFRESH}; remove what somebody wrote to /etc/cdi, as the unit writes to"
        " /var/run/cdi at each boot), and create the containers anew; an older toolkit does not help",
        "NVIDIA/nvidia-container-toolkit#1934, #1967; its internal/edits/device.go",
        sign=Sign("container", other_numbers, (CDI,)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "cdi-unresolvable",
        r"unresolvable CDI devices? [\w.]{0,20}nvidia|could not select device driver \W{0,3}cdi\b",
        "the container engine finds no CDI device of this name: nobody wrote a specification, or not before Docker"
        " started at the boot, it does not name this card, or it is newer than the engine reads",
        f"Compare the name with nvidia-ctk cdi list; systemctl restart {REFRESH} writes them anew; then start a"
        f" container of the boot again (docker start NAME). Version 0.7.0, which the toolkit writes since 1.19.1, is"
        f" read from {_readers()} on: for an older engine put"
        " NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS=no-additional-gids-for-device-nodes into"
        f" /etc/nvidia-container-toolkit/nvidia-cdi-refresh.env, then systemctl restart {REFRESH}",
        "NVIDIA/nvidia-container-toolkit#146, #1940, #1853; its release notes of 1.19.1",
        sign=Sign("container", too_new, (DPKG, CDI), grave=False),
        treatment=ForPeople(),
        narrower=r"failed to initialize NVML: ",  # why nobody wrote it, in the generator's own line
    ),
)
