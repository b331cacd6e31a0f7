"""CDI specifications of another driver, with other numbers than the kernel has, or newer than an engine reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, ForPeople, Sign, Variant
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


_CDI_ON = (
    'Provision again, which installs the stack\'s Docker; or put "features": {"cdi": true} into'
    " /etc/docker/daemon.json (from 25 on; rootless: ~/.config/docker/daemon.json) and restart Docker once no container"
    " works (docker info then lists CDI spec directories); or start the container with --gpus all"
)

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
        "cdi-refresh-early",
        r"nvidia-ctk\[[0-9]{1,10}\]: [^\n]*failed to initialize NVML: (?:ERROR_)?DRIVER.NOT.LOADED[^\n]*"
        r"|failed to initialize NVML: (?:ERROR_)?DRIVER.NOT.LOADED[^\n]*\n(?:[^\n]*\n){0,6}?[^\n]*nvidia-cdi-refresh\.",
        f"{REFRESH} ran at the boot before the driver was up, and wrote no CDI specification (Driver Not Loaded). Where"
        " nvidia-smi works now, the driver is in order, and only the specification is missing",
        f"Run nvidia-smi: where it works, provision again, or systemctl restart {REFRESH}; then start the containers"
        " that wait for it. So that the next boot does not end so, update the container toolkit (the unit tries again"
        f" since 1.18.2), or order it: systemctl edit {REFRESH} with After=nvidia-persistenced.service. Where"
        " nvidia-smi fails, mend the driver first",
        "NVIDIA/nvidia-container-toolkit#1611; its release notes of 1.18.2",
    ),
    FailureRule(
        "cdi-device-missing",
        r"Could not locate /dev/nvidia(?:-modeset|-uvm|ctl|[0-9]{1,2}):[^\n]*",
        "a CDI specification was written before FILE was there, as at a boot, and containers that are made from it lack"
        " that device (nvidia-modeset is for graphics, the others for every program)",
        "Where nobody needs the device in containers, leave it so. Else have it made (nvidia-modprobe -m for"
        f" nvidia-modeset, nvidia-modprobe -u -c 0 for the others), then systemctl restart {REFRESH}, which writes the"
        " specification anew, and make the containers again; for the next boot, update the container toolkit or order"
        " the unit after nvidia-persistenced.service",
        "NVIDIA/nvidia-container-toolkit#1982",
        names=(r"Could not locate (?P<file>/dev/nvidia[\w-]{0,12})",),
        weight="consequence",
    ),
    FailureRule(
        "cdi-unresolvable",
        # where the devices are listed above, the engine does not read what is written
        r"(?:Found [1-9][0-9]{0,3} CDI devices[^\n]*\n(?:[^\n]*\n){0,40}?[^\n]*)?unresolvable CDI devices?"
        r" [\w.]{0,20}nvidia"
        r"|could not select device driver \W{0,3}cdi\b|conflicting device \W{0,2}[\w.]{0,20}nvidia\.com/"
        r"|failed to (?:load|read|parse) CDI [Ss]pec [^\n]*nvidia[^\n]*"
        r"|adding custom device \W{0,3}nvidia\.com/[^\n]*|failed to stat CDI host device \W{1,3}/dev/[^n][^\n]*",
        "the container engine finds no CDI device of this name: nobody wrote a specification, or not before Docker"
        " started at the boot, it does not name this card, or it is newer than the engine reads",
        f"Compare the name with nvidia-ctk cdi list; systemctl restart {REFRESH} writes them anew (before toolkit 1.18:"
        " nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml; without nvidia-ctk, install nvidia-container-toolkit"
        " first, which podman and docker in podman's place need too); then start a"
        f" container of the boot again (docker start NAME). Version 0.7.0, which the toolkit writes since 1.19.1, is"
        f" read from {_readers()} on: for an older engine put"
        " NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS=no-additional-gids-for-device-nodes into"
        f" /etc/nvidia-container-toolkit/nvidia-cdi-refresh.env, then systemctl restart {REFRESH}",
        "NVIDIA/nvidia-container-toolkit#146, #1940, #1853; its release notes of 1.19.1",
        names=(r"stat CDI host device \\?\"(?P<file>/[^\s\"\\]{1,120})",),
        sign=Sign("container", too_new, (DPKG, CDI), grave=False),
        treatment=ForPeople(),
        narrower=r"failed to initialize NVML: ",  # why nobody wrote it, in the generator's own line
        variants=(
            Variant(
                r"CDI devices? runtime\.nvidia\.com",
                "NVIDIA's runtime, which makes the specification of runtime.nvidia.com by itself when a container"
                " starts, failed to make it: the driver, one of its libraries or a device file is not in order;"
                " toolkits before 1.18.2 go on without it, and hide the reason",
                "Find the reason on the host: nvidia-smi, then nvidia-ctk cdi generate >/dev/null as root, whose last"
                " line says it (or debug in /etc/nvidia-container-runtime/config.toml, which names a log), and mend"
                " that; `invoke doctor` looks at driver, libraries and device files. Then start the container"
                " again. Nothing is to be written into /etc/cdi for it",
            ),
            Variant(
                r"Found [1-9][0-9]{0,3} CDI devices|failed to (?:load|read|parse) CDI [Ss]pec [^\n]*(?:unknown field"
                r"|[Vv]ersion)",
                "the specification is there and names the devices, and the container engine does not read it: it is of"
                " a newer version (0.7.0, which the container toolkit writes since 1.19.1) than this engine knows",
                f"Take an engine that reads 0.7.0 ({_readers()} on), or put"
                " NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS=no-additional-gids-for-device-nodes into"
                f" /etc/nvidia-container-toolkit/nvidia-cdi-refresh.env and systemctl restart {REFRESH}, which writes"
                " an older version; a toolkit before 1.19.1 does so too",
            ),
            Variant(
                r"setting up CDI devices: ",
                "podman finds no CDI device of this name: nobody wrote a specification, or not where this podman looks"
                " (not every release looks into /var/run/cdi, where the toolkit's service writes it), or it does not"
                " name this card",
                "Compare with nvidia-ctk cdi list (ls /etc/cdi /run/cdi). Where it lists the name, show podman the"
                " directory (podman --cdi-spec-dir=/run/cdi; cdi_spec_dirs in containers.conf), or write it to the"
                " usual one: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml. Where there is none, install"
                f" nvidia-container-toolkit and systemctl restart {REFRESH} (before 1.18 generate it so). podman before"
                f" 5.1 does not read version 0.7.0, which the toolkit writes since 1.19.1. Docker's settings have no"
                " part in it",
            ),
            Variant(
                r"stat CDI host device",
                "the CDI specification names a device file that the host no longer has{ (FILE)|}: it was written before"
                " a driver, a card or the order of the cards changed",
                f"Write it anew: systemctl restart {REFRESH}, or nvidia-ctk cdi generate"
                f" --output=/etc/cdi/nvidia.yaml, and"
                " remove an older copy in the other directory (ls -l /etc/cdi /var/run/cdi)",
            ),
            Variant(
                r"custom device",
                "Docker took the name of a CDI device for a device file: it does not use CDI, as it is older than 25,"
                " or before 28.2 and features.cdi is not set",
                _CDI_ON,
            ),
            Variant(
                r"could not select device driver \W{0,3}cdi",
                "CDI is switched off in this Docker, which is asked for a CDI device: from 25 to 28.1 it is off unless"
                " features.cdi is set (later releases have it on, unless that is false), and older ones have none",
                _CDI_ON,
            ),
            Variant(
                r"conflicting device",
                "two CDI specifications in one directory name the same device, so that engines use neither",
                "Compare them (nvidia-ctk cdi list; ls -l /etc/cdi /var/run/cdi): keep the one that"
                f" {REFRESH} writes to /var/run/cdi, and remove copies that somebody made by hand",
            ),
        ),
    ),
)
