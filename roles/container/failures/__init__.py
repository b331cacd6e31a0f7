"""Failures of Docker and the NVIDIA container toolkit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, ForPeople, Sign, Stuck, Variant
from hostwright.resources import DPKG, Probe
from hostwright.standard.roles.container.engine import DAEMON_JSON, NAME_SERVERS_SH
from hostwright.standard.roles.container.failures.access import ACCESS_RULES
from hostwright.standard.roles.container.failures.cdi import CDI_RULES
from hostwright.standard.roles.container.failures.docker import (
    DOCKER_RULES,
    HOOK_THERE,
    TWICE,
    no_hook,
    not_json,
    other_runtime_gone,
    own_runtime_gone,
    runtime_unknown,
)
from hostwright.standard.roles.container.failures.state import INFO, SETTINGS, engine_package
from hostwright.standard.roles.container.failures.texts import DAEMON_RULES, HOOK_RULES
from hostwright.standard.roles.container.failures.toolkit import (
    LIBRARY_NOT_FOUND,
    REACHES_DRIVER,
    TOOLKIT_RULES,
    library_not_found,
    without_driver,
)
from hostwright.standard.roles.container.failures.units import UNIT_RULES, UNITS, too_often

if TYPE_CHECKING:
    from hostwright.failures import AuditContext


NAME_SERVERS = Probe(f"{NAME_SERVERS_SH}name_servers_lost", root=True)


def no_server(ctx: AuditContext) -> Iterator[str]:
    """Docker's settings have no name servers (``dns``), and the host's list of name servers is missing, empty, or names
    only loopback addresses without a listening process.
    """
    if engine_package(ctx):
        yield from ctx.text(NAME_SERVERS).splitlines()


NAME_RULES = (
    FailureRule(
        "container-name-servers",
        r"this host's containers have no usable name server",
        "containers have no usable name server: Docker's source of the host's name servers is missing, empty, or"
        " lists only a loopback address on which no process listens",
        "Repair the file (with systemd-resolved: resolvectl status shows its servers, resolvectl dns sets them). Or"
        ' set name servers for containers alone: "dns": ["10.0.0.2"] in /etc/docker/daemon.json. Then restart'
        " Docker, because containers keep the settings of their start",
        "moby/moby#6388, #49665; moby libnetwork/resolvconf",
        sign=Sign("container", no_server, (DPKG, NAME_SERVERS), grave=False),
        treatment=ForPeople(),
        transient=False,
    ),
)


COMMANDS = ("docker", "dockerd")  #: command names that stay lowercase at the start of a sentence

FAILURES = (
    FailureRule(
        "no-gpu-in-docker",
        r"could not select device driver"
        r"|failed to discover GPU vendor from CDI"
        r"|nvidia-container-(?:runtime-hook|toolkit|cli)\W{1,6}(?:executable file not found|no such file)"
        r"|find binary nvidia-container-cli in PATH"
        r"|Command not found: nvidia-container-cli",
        "Docker does not find the NVIDIA container toolkit: its program nvidia-container-runtime-hook is not"
        " installed, or was not when Docker started",
        "Provision again: the container role installs the toolkit and restarts Docker. By hand: install"
        " nvidia-container-toolkit, run nvidia-ctk runtime configure --runtime=docker, then systemctl restart docker",
        "NVIDIA/nvidia-docker#1034, #1243",
        unless=r"device driver \W{1,3}(?:amd|intel|cdi)\b",
        variants=(
            Variant(
                r"discover GPU vendor from CDI",
                "Docker (29 or later) finds no vendor's CDI specification for the requested GPUs: the host has no"
                " NVIDIA GPU, or its driver or container toolkit is not installed or wrote no specification",
                "Run nvidia-smi on the host. If the host has no NVIDIA GPU, remove --gpus (in a compose file, the"
                " device reservation). If nvidia-smi lists GPUs, provision again: the container role installs the"
                " toolkit, whose service writes the specification. By hand: nvidia-ctk cdi generate"
                " --output=/etc/cdi/nvidia.yaml, check with nvidia-ctk cdi list, then restart Docker",
            ),
        ),
        narrower=r"snap\.docker|/snap/docker|docker-snap",
        sign=Sign("container", no_hook, (DPKG, *SETTINGS, HOOK_THERE), provision=True),
    ),
    FailureRule(
        "runtime-gone",
        r"nvidia-container-runtime\W{1,4} executable file not found"
        r"|exec(?:/|: )[\"\\]{0,3}\S*nvidia-container-runtime[\"\\]{0,3}: (?:executable file not found"
        r"|no such file)",
        "Docker's daemon.json names NVIDIA's runtime, but its program is missing on the host. No container with this"
        " runtime starts, and no container at all if it is the default-runtime",
        "Provision again: the container role installs the toolkit, which contains the program",
        "NVIDIA/nvidia-container-runtime#98",
        sign=Sign("container", own_runtime_gone, (DPKG, *SETTINGS, HOOK_THERE), provision=True),
    ),
    FailureRule(
        "other-runtime-gone",
        r"(?:exec: |fork/exec )[\"\\]{0,3}[^\s\"\\]*(?:runsc|kata|sysbox|crun|youki|-runtime|runc)[^\s\"\\]{0,40}"
        r"[\"\\]{0,3}: (?:executable file not found|no such file)",
        "Docker's daemon.json names a runtime whose program PROGRAM is missing, so that its containers do not start",
        "Reinstall the package with PROGRAM. If nobody uses the runtime, remove its entry from runtimes and"
        f" default-runtime in {DAEMON_JSON}, and reload Docker (systemctl reload docker)",
        "moby daemon/runtime_unix.go; dockerd(8), runtimes",
        names=(
            r"runtime \S{1,60} is (?P<program>\S{1,200}), which",
            r"exec:? [\"\\]{0,3}(?P<program>[^\s\"\\]{1,200})[\"\\]{0,3}: ",
        ),
        sign=Sign("container", other_runtime_gone, (DPKG, *SETTINGS, HOOK_THERE), grave=False),
    ),
    FailureRule(
        "runtime-unknown",
        r"(?:unknown or invalid runtime name:|Unknown runtime specified|no runtime for) [\"\\]{0,3}nvidia"
        r"|no runtime for \S{0,3}nvidia"
        r"|default (?:specified )?runtime [\"'\\]{0,3}nvidia[\"'\\]{0,3} (?:does not exist|not found)"
        r"|did you configure the NVIDIA Container Toolkit|did you set the docker default runtime to"
        r"|RuntimeHandler [^\n]*nvidia[^\n]*not supported",
        "Docker has no runtime nvidia: the container toolkit is not installed, daemon.json does not name its runtime,"
        " or Docker was not restarted since",
        "Provision again: the container role installs the toolkit, merges the runtime into daemon.json and restarts"
        " Docker. By hand: install nvidia-container-toolkit, run nvidia-ctk runtime configure --runtime=docker, then"
        " systemctl restart docker",
        "GoogleCloudPlatform/gcsfuse#1364",
        sign=Sign("container", runtime_unknown, (DPKG, *SETTINGS, UNITS.states, INFO), provision=True),
    ),
    FailureRule(
        "driver-library-not-in-cache",
        f"{LIBRARY_NOT_FOUND}|initialization error: cannot open shared object",
        "the container toolkit does not find the driver's library LIBRARY, so that no container gets a GPU: the file"
        " is missing, or is not in /etc/ld.so.cache, which the toolkit reads",
        "Run ldconfig as root, then check ldconfig -p | grep -E 'libcuda.so|libnvidia-ml.so'. If the library is still"
        " missing, provision again: the driver role installs it. Otherwise check root and ldcache in"
        " /etc/nvidia-container-runtime/config.toml. In a container that runs the toolkit itself, check that the"
        " host's libraries are mounted",
        "libnvidia-container, src/driver.c and src/nvc_ldcache.c; OE4T/meta-tegra#1456; NVIDIA/libnvidia-container#231",
        names=(r"load library failed: (?P<library>lib[a-z-]{1,20}\.so[.0-9]{0,12})",),
        sign=Sign("container", library_not_found, (REACHES_DRIVER,)),
        treatment=Stuck("the container toolkit finds no driver"),
    ),
    FailureRule(
        "container-without-driver",
        r"nvml error: driver not loaded|WSL environment detected but no adapters"
        r"|could not load NVML library"
        r"|failed to initialize NVML: ERROR_LIBRARY_NOT_FOUND",
        "the container toolkit finds no loaded driver, so that no container gets a GPU",
        "Repair the driver layer if `invoke plan` reports it. Otherwise find the setting that hides the driver with"
        " nvidia-container-cli -d /dev/tty info: root in /etc/nvidia-container-runtime/config.toml, or LD_LIBRARY_PATH",
        "NVIDIA/nvidia-docker#1393",
        sign=Sign("container", without_driver, (REACHES_DRIVER,)),
        treatment=Stuck("the container toolkit finds no driver"),
    ),
    FailureRule(
        "container-lost-gpu",
        r"Failed to initialize NVML:? Unknown Error",
        "a running container lost access to its GPUs through systemctl daemon-reload, or never had access because of"
        " no-cgroups = true in /etc/nvidia-container-runtime/config.toml",
        "If that file has no-cgroups = true, set it to false. Restart the container. The links in /dev/char (the"
        " container role creates them) prevent the loss through daemon-reload",
        "NVIDIA/nvidia-docker#1730, NVIDIA/nvidia-container-toolkit#48",
        weight="consequence",
    ),
    TWICE,
    FailureRule(
        "daemon-json",
        r"unable to configure the Docker daemon with file"
        r"|the following directives don't match any configuration option"
        r"|daemon\.json[^\n]*(?:invalid character|cannot unmarshal|unexpected end of JSON)"
        r"|failed to load (?:daemon )?config(?:uration)?[^\n]*daemon\.json",
        "/etc/docker/daemon.json is not valid",
        "Provision again: the container role validates the new file and keeps the old one as .hostwright-backup",
        "moby/moby#44905",
        sign=Sign("container", not_json, SETTINGS, provision=True),
    ),
    *CDI_RULES,
    *NAME_RULES,
    *DAEMON_RULES,
    *HOOK_RULES,
    FailureRule(
        "start-limit",
        r"[Ss]tart request repeated too quickly|Failed with result '(?:service-)?start-limit(?:-hit)?'",
        "a unit failed so often that systemd no longer starts it (start limit)",
        "Read its journal (journalctl -u UNIT), fix the cause, run systemctl reset-failed UNIT, then start it",
        "systemd.unit(5)",
        names=(
            r"(?:^|\s)(?P<unit>[\w@.-]{1,100}\.(?:service|socket))(?:: start-limit-hit|: Start request|: Failed with)",
            r"repeated too quickly for (?P<unit>[\w@.-]{1,100}\.(?:service|socket))",
        ),
        sign=Sign("container", too_often, (UNITS.states, UNITS.journals)),
        treatment=Stuck("a unit failed too often to be started again"),
        weight="consequence",
    ),
    *DOCKER_RULES,
    *TOOLKIT_RULES,
    *UNIT_RULES,
    *ACCESS_RULES,
)
