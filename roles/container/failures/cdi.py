"""Signs of faulty CDI specifications: of another driver, with wrong device numbers, or newer than an engine
supports.
"""

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

CDI = Probe(f"{CDI_SH}cdi_all", root=True)  # Root is needed because some sites restrict the CDI files to root.
NEW = (0, 7)  #: first version of CDI specifications that some container engines cannot read
_SPEC = r"(/(?:etc|var/run)/cdi/[^ ]+)"
_MISSING = Pattern(rf"missing {_SPEC} (/.+)")
_NUMBER = Pattern(rf"number {_SPEC} (/dev/[^ ]+) ([0-9]{{1,9}}) ([0-9]{{1,9}})")
_VERSION = Pattern(rf"version {_SPEC} ([0-9][0-9.]{{0,20}})")


def stale(ctx: AuditContext) -> Iterator[str]:
    """A CDI specification of NVIDIA in /etc/cdi or /var/run/cdi names files that do not exist."""
    for line in ctx.text(CDI).splitlines():
        if match := _MISSING.fullmatch(line):
            yield f"{match[1]} names {match[2]}, which does not exist"


def other_numbers(ctx: AuditContext) -> Iterator[str]:
    """A CDI specification of NVIDIA has another major number for a device file than /proc/devices."""
    for line in ctx.text(CDI).splitlines():
        if match := _NUMBER.fullmatch(line):
            yield f"{match[1]} has {match[3]} as the major number of {match[2]}, but the kernel has {match[4]}"


def too_new(ctx: AuditContext) -> Iterator[str]:
    """A CDI specification of NVIDIA has version 0.7.0 or newer, which an installed engine with CDI does not support."""
    lines = [match for line in ctx.text(CDI).splitlines() if (match := _VERSION.fullmatch(line))]
    newer = [match for match in lines if numbers(match[2]) >= NEW]
    for row in ENGINE_ROWS:
        packages = (ctx.packages.get(name) for name in row.packages)
        for package in packages:
            if newer and package and package.present and row.first <= numbers(package.version) < row.reads_0_7:
                yield f"{newer[0][1]} has version {newer[0][2]}, but {package.name} is {package.version}"


def _readers() -> str:
    return ", ".join(f"{row.engine} {dotted(row.reads_0_7)}" for row in ENGINE_ROWS)


_CDI_ON = (
    'Provision again, which installs the stack\'s Docker. Or add "features": {"cdi": true} to'
    " /etc/docker/daemon.json (Docker 25 or later; rootless: ~/.config/docker/daemon.json) and restart Docker when no"
    " container works (docker info then lists CDI spec directories). Or start the container with --gpus all"
)

CDI_RULES = (
    FailureRule(
        "cdi-stale",
        r"(?:error stat'ing file|cannot stat|error mounting) .{0,4}/[^\n]{0,200}(?:nvidia|libcuda)[^\n]*"
        r"no such file or directory",
        "a CDI specification names driver files that no longer exist: it was made before a replacement of the driver,"
        " and containers that request its devices do not start",
        f"Regenerate it: systemctl restart {REFRESH} (before toolkit 1.18: nvidia-ctk cdi generate"
        " --output=/etc/cdi/nvidia.yaml). Remove copies of it in /etc/cdi; those in /var/run/cdi override them",
        "CDI specification; Igalia/webkit-container-sdk#23",
        sign=Sign("container", stale, (CDI,)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "cdi-numbers",
        "",
        "a CDI specification has device numbers of an earlier boot. In its containers, nvidia-smi works, but CUDA"
        " fails with CUDA_ERROR_UNKNOWN (cuInit 999), because /dev/nvidia-uvm has a wrong number. The container"
        " toolkit writes numbers since 1.19.0, and nvidia-uvm gets another one whenever its module is loaded",
        f"Regenerate it (systemctl restart {REFRESH}; remove handmade files in /etc/cdi, because the unit writes to"
        " /var/run/cdi at each boot), and recreate the containers. An older toolkit does not help",
        "NVIDIA/nvidia-container-toolkit#1934, #1967; its internal/edits/device.go",
        sign=Sign("container", other_numbers, (CDI,)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "cdi-refresh-early",
        r"nvidia-ctk\[[0-9]{1,10}\]: [^\n]*failed to initialize NVML: (?:ERROR_)?DRIVER.NOT.LOADED[^\n]*"
        r"|failed to initialize NVML: (?:ERROR_)?DRIVER.NOT.LOADED[^\n]*\n(?:[^\n]*\n){0,6}?[^\n]*nvidia-cdi-refresh\.",
        f"{REFRESH} ran at boot before the driver was loaded, and wrote no CDI specification (Driver Not Loaded). If"
        " nvidia-smi works now, the driver works, and only the specification is missing",
        f"Run nvidia-smi. If it works, provision again, or run systemctl restart {REFRESH}; then start the waiting"
        " containers. To prevent this at the next boot, update the container toolkit (the unit retries since 1.18.2),"
        f" or order the unit: systemctl edit {REFRESH} with After=nvidia-persistenced.service. If nvidia-smi fails,"
        " repair the driver first",
        "NVIDIA/nvidia-container-toolkit#1611; its release notes of 1.18.2",
    ),
    FailureRule(
        "cdi-device-missing",
        r"Could not locate /dev/nvidia(?:-modeset|-uvm|ctl|[0-9]{1,2}):[^\n]*",
        "a CDI specification was written before FILE existed, as at a boot, and containers created from it lack that"
        " device (nvidia-modeset is for graphics, the others for every program)",
        "If no container needs the device, ignore this. Otherwise create the device (nvidia-modprobe -m for"
        f" nvidia-modeset, nvidia-modprobe -u -c 0 for the others), run systemctl restart {REFRESH}, which regenerates"
        " the specification, and recreate the containers. To prevent this at the next boot, update the container"
        " toolkit or order the unit after nvidia-persistenced.service",
        "NVIDIA/nvidia-container-toolkit#1982",
        names=(r"Could not locate (?P<file>/dev/nvidia[\w-]{0,12})",),
        weight="consequence",
    ),
    FailureRule(
        "cdi-unresolvable",
        r"(?:Found [1-9][0-9]{0,3} CDI devices[^\n]*\n(?:[^\n]*\n){0,40}?[^\n]*)?unresolvable CDI devices?"
        r" [\w.]{0,20}nvidia"
        r"|could not select device driver \W{0,3}cdi\b|conflicting device \W{0,2}[\w.]{0,20}nvidia\.com/"
        r"|failed to (?:load|read|parse) CDI [Ss]pec [^\n]*nvidia[^\n]*"
        r"|adding custom device \W{0,3}nvidia\.com/[^\n]*|failed to stat CDI host device \W{1,3}/dev/[^n][^\n]*",
        "the container engine finds no CDI device of this name. Causes: no specification exists, or none did when"
        " Docker started at boot; the specification lacks this GPU; or its version is newer than the engine supports",
        f"Compare the name with nvidia-ctk cdi list. Regenerate the specification with systemctl restart {REFRESH}"
        " (before toolkit 1.18: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml; without nvidia-ctk, install"
        " nvidia-container-toolkit first, which podman needs too). Then restart a container that failed at boot"
        f" (docker start NAME). Version 0.7.0, which the toolkit writes since 1.19.1, needs {_readers()} or newer. For"
        " an older engine, add NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS=no-additional-gids-for-device-nodes to"
        f" /etc/nvidia-container-toolkit/nvidia-cdi-refresh.env, then run systemctl restart {REFRESH}",
        "NVIDIA/nvidia-container-toolkit#146, #1940, #1853; its release notes of 1.19.1",
        names=(r"stat CDI host device \\?\"(?P<file>/[^\s\"\\]{1,120})",),
        sign=Sign("container", too_new, (DPKG, CDI), grave=False),
        treatment=ForPeople(),
        narrower=r"failed to initialize NVML: ",
        variants=(
            Variant(
                r"CDI devices? runtime\.nvidia\.com",
                "NVIDIA's runtime, which makes the specification of runtime.nvidia.com at a container's start, failed"
                " to make it: the driver, a library of it or a device file is faulty. Toolkits before 1.18.2 continue"
                " without it and hide the reason",
                "Find the reason on the host: run nvidia-smi, then nvidia-ctk cdi generate >/dev/null as root, whose"
                " last line gives it (or set debug in /etc/nvidia-container-runtime/config.toml, which names a log)."
                " `invoke doctor` checks driver, libraries and device files. Repair the cause, then start the"
                " container again. Do not write to /etc/cdi for this",
            ),
            Variant(
                r"Found [1-9][0-9]{0,3} CDI devices|failed to (?:load|read|parse) CDI [Ss]pec [^\n]*(?:unknown field"
                r"|[Vv]ersion)",
                "the specification lists the devices, but the container engine does not support its version (0.7.0,"
                " which the container toolkit writes since 1.19.1)",
                f"Use an engine that supports 0.7.0 ({_readers()} or newer). Or add"
                " NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS=no-additional-gids-for-device-nodes to"
                f" /etc/nvidia-container-toolkit/nvidia-cdi-refresh.env and run systemctl restart {REFRESH}, which then"
                " writes an older version. A toolkit before 1.19.1 also writes an older version",
            ),
            Variant(
                r"setting up CDI devices: ",
                "podman finds no CDI device of this name. Causes: no specification exists, or none in podman's search"
                " path (not every release searches /var/run/cdi, where the toolkit's service writes it), or it lacks"
                " this GPU",
                "Compare the name with nvidia-ctk cdi list (ls /etc/cdi /run/cdi). If it is listed, give podman the"
                " directory (podman --cdi-spec-dir=/run/cdi; cdi_spec_dirs in containers.conf), or generate it in the"
                " default one: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml. If no specification exists,"
                f" install nvidia-container-toolkit and run systemctl restart {REFRESH} (before 1.18, use the command"
                " above). podman before 5.1 does not support version 0.7.0, which the toolkit writes since 1.19.1."
                " Docker's settings are not the cause",
            ),
            Variant(
                r"stat CDI host device",
                "the CDI specification names a device file that the host no longer has{ (FILE)|}: it was written"
                " before a change of the driver, a GPU or the order of the GPUs",
                f"Regenerate it: systemctl restart {REFRESH}, or nvidia-ctk cdi generate"
                " --output=/etc/cdi/nvidia.yaml. Remove an older copy in the other directory (ls -l /etc/cdi"
                " /var/run/cdi)",
            ),
            Variant(
                r"custom device",
                "Docker interpreted the name of a CDI device as a device file. It does not use CDI: it is older than"
                " 25, or older than 28.2 without features.cdi",
                _CDI_ON,
            ),
            Variant(
                r"could not select device driver \W{0,3}cdi",
                "CDI is off in this Docker, but a CDI device was requested. In 25 to 28.1 it is off unless"
                " features.cdi is set, in later releases on unless that is false; older releases have no CDI",
                _CDI_ON,
            ),
            Variant(
                r"conflicting device",
                "two CDI specifications in one directory define the same device, so that engines use neither",
                f"Compare them (nvidia-ctk cdi list; ls -l /etc/cdi /var/run/cdi). Keep the one that {REFRESH} writes"
                " to /var/run/cdi, and remove handmade copies",
            ),
        ),
    ),
)
