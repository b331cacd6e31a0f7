"""Signs that Docker cannot start, cannot give GPUs to containers, or will take GPUs from containers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, ForPeople, Sign, Unread, Variant, known_cause
from hostwright.resources import DPKG, RELEASE, Disturbing, Probe, RestartedAfter, release
from hostwright.roles import sh, sh_file
from hostwright.standard.roles.base.failures.host import left_out
from hostwright.standard.roles.container.engine import DAEMON_JSON, ENGINES, FIREWALL, SNAP_DOCKER, without
from hostwright.standard.roles.container.failures.state import (
    ACTIVE,
    COMMAND,
    CONTEXT,
    INFO,
    SETTINGS,
    UNIT,
    NotJson,
    engine,
    engine_package,
    led_elsewhere,
    said_twice,
    settings,
    unit_files,
)
from hostwright.standard.roles.container.failures.units import SOCKET, UNITS, masked
from hostwright.standard.roles.container.running import LOCAL_API, LOCAL_DOCKER
from hostwright.standard.roles.driver.states.device_files import DeviceLinks

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

LINKS = DeviceLinks()
RUNTIME = "nvidia"
#: program that dockerd searches when dockerd starts, and needs for ``--gpus``
HOOK = "nvidia-container-runtime-hook"
#: packages of other container runtimes that may replace Docker
OTHER_RUNTIMES = ("containerd.io", "cri-o", "podman-docker")
#: template for ``docker inspect`` that prints ``NAME POLICY EXIT ERROR`` for containers that failed to start
_START = "{{if .State.Error}}{{.Name}} {{.HostConfig.RestartPolicy.Name}} {{.State.ExitCode}} {{.State.Error}}{{end}}"
#: filter ``{"status":["exited","created"]}`` of Docker's API, as URL text
_ENDED = "%7B%22status%22%3A%5B%22exited%22%2C%22created%22%5D%7D"
NOT_STARTED = Probe(
    f"{ACTIVE} || exit 0\n"
    f"""[ "$({LOCAL_API}'/containers/json?all=1&filters={_ENDED}')" != "[]" ] || exit 0\n"""
    f"timeout -k 1 10 {LOCAL_DOCKER} ps -aq --filter status=exited --filter status=created | head -n 50 |\n"
    + sh(f"  xargs -r timeout -k 1 10 {LOCAL_DOCKER} inspect --format %s |\n", _START)
    + "  grep -E '^/[^ ]+ (always|unless-stopped) ' | cut -c 1-500; exit 0",
    root=True,
)
#: probe for the program ``HOOK``, missing runtimes and a missing group. The first lines of ``hook.sh`` describe the
#: output.
HOOK_THERE = Probe(sh_file(__file__, "hook.sh", hook=HOOK, settings=DAEMON_JSON, socket=SOCKET))


def podman_instead(ctx: AuditContext) -> Iterator[str]:
    """podman-docker is installed, but no Docker package."""
    row = ctx.packages.get("podman-docker")
    if row and row.present and not engine_package(ctx):
        yield f"podman-docker {row.version} is installed, but no package of Docker"


def snap(ctx: AuditContext) -> Iterator[str]:
    """/snap/docker/current exists."""
    if ctx.answer(SNAP_DOCKER).ok:
        yield f"/snap/docker/current points to {ctx.answer(SNAP_DOCKER).strip()}"


def gone(ctx: AuditContext) -> Iterator[str]:
    """The release record has the host's Docker, but dpkg has no Docker package, the snap is missing, and the host has
    no other container runtime.
    """
    ctx.require(RELEASE)
    role = release.read(ctx.facts).get("roles", {}).get("container")
    interrupted = any(row.broken for name in ENGINES if (row := ctx.packages.get(name)))
    others = (ctx.packages.get(name) for name in OTHER_RUNTIMES)
    if any(row and row.present for row in others):
        return
    if role and not engine_package(ctx) and not interrupted and not ctx.answer(SNAP_DOCKER).ok:
        yield "no package of Docker is installed"


def stopped(ctx: AuditContext) -> Iterator[str]:
    """Docker is installed and its unit can start, but is inactive and not queued. docker.socket has not failed."""
    shown = UNITS.unit(ctx, UNIT)
    startable = (
        shown.load == "loaded" and not shown.queued and not any(masked(ctx)) and not UNITS.unit(ctx, SOCKET).failed
    )
    if engine_package(ctx) and startable and shown.active == "inactive":
        yield str(shown) + (", left out at the boot to break an ordering cycle" if UNIT in left_out(ctx) else "")


def no_hook(ctx: AuditContext) -> Iterator[str]:
    """Docker is installed, but nvidia-container-runtime-hook is missing."""
    there = [line for line in ctx.text(HOOK_THERE).splitlines() if line.startswith("/")]
    if engine_package(ctx) and not there and not any(own_runtime_gone(ctx)):
        yield f"{HOOK} is not there"


def own_runtime_gone(ctx: AuditContext) -> Iterator[str]:
    """/etc/docker/daemon.json names a runtime of NVIDIA whose program is missing."""
    yield from (line for program, line in _runtimes_gone(ctx) if RUNTIME in program)


def other_runtime_gone(ctx: AuditContext) -> Iterator[str]:
    """/etc/docker/daemon.json names another vendor's runtime whose program is missing."""
    yield from (line for program, line in _runtimes_gone(ctx) if RUNTIME not in program)


def _runtimes_gone(ctx: AuditContext) -> Iterator[tuple[str, str]]:
    if not engine_package(ctx):
        return
    try:
        chosen = settings(ctx)
    except NotJson:
        return
    gone = {line.removeprefix("gone ") for line in ctx.text(HOOK_THERE).splitlines() if line.startswith("gone ")}
    named = chosen.get("runtimes")
    for name, one in named.items() if isinstance(named, dict) else ():
        program = one.get("path") if isinstance(one, dict) else None
        if isinstance(program, str) and program in gone:
            default = f", and {name} is the default-runtime: no container starts at all"
            yield (
                program,
                f"{DAEMON_JSON}: the runtime {name} is {program}, which is not there"
                + (default if chosen.get("default-runtime") == name else ""),
            )


def group_gone(ctx: AuditContext) -> Iterator[str]:
    """Docker is installed, but the group of docker.socket (SocketGroup) does not exist."""
    if not engine_package(ctx):
        return
    for line in ctx.text(HOOK_THERE).splitlines():
        if line.startswith("group "):
            shown = UNITS.unit(ctx, SOCKET)
            yield f"the group {line.removeprefix('group ')} of {SOCKET} does not exist; {shown}"


def not_json(ctx: AuditContext) -> Iterator[str]:
    """/etc/docker/daemon.json exists but is not a JSON object."""
    try:
        settings(ctx)
    except NotJson as error:
        yield f"{DAEMON_JSON}: {error}"
        yield from _failed(ctx)


def doubled(ctx: AuditContext) -> Iterator[str]:
    """/etc/docker/daemon.json and dockerd's command line set the same option (systemctl cat docker)."""
    try:
        keys = said_twice(ctx)
    except NotJson:
        return
    for key in keys:
        yield f"{key}: in {DAEMON_JSON} and on the command line of {UNIT} ({', '.join(unit_files(ctx))})"
    if keys:
        yield from _failed(ctx)


def runtime_unknown(ctx: AuditContext) -> Iterator[str]:
    """docker info does not list the runtime nvidia, or /etc/docker/daemon.json does not name it."""
    if not engine_package(ctx):
        return
    try:
        named = settings(ctx).get("runtimes")
    except NotJson:
        return
    if not (isinstance(named, dict) and RUNTIME in named):
        yield f"{DAEMON_JSON} names no runtime {RUNTIME}"
    if UNITS.unit(ctx, UNIT).active == "active" and RUNTIME not in engine(ctx).runtimes:
        yield f"Docker has the runtimes {', '.join(engine(ctx).runtimes)}"


def restart_due(ctx: AuditContext) -> Iterator[str]:
    """Docker was started before the last change of daemon.json or the toolkit's packages, and both are as desired."""
    resources = (state for role in ctx.desired.roles for state in role.resources)
    inner = (state.resource if isinstance(state, Disturbing) else state for state in resources)
    for restart in (state for state in inner if isinstance(state, RestartedAfter) and state.unit == UNIT):
        newer = ctx.answer(restart.probes()[0]).text.splitlines()
        if newer and _in_order(ctx, restart):
            yield from (f"{path} is newer than the running Docker" for path in newer)


def _in_order(ctx: AuditContext, restart: RestartedAfter) -> bool:
    try:
        if any(state.plan(ctx.facts) for state in restart.inputs) or said_twice(ctx) or any(runtime_unknown(ctx)):
            return False
    except NotJson:
        return False
    except (KeyError, Unread):
        return True
    return True


def _failed(ctx: AuditContext) -> Iterator[str]:
    if UNITS.states in ctx.facts and (shown := UNITS.unit(ctx, UNIT)).failed:
        yield str(shown)


def links_missing(ctx: AuditContext) -> Iterator[str]:
    """An NVIDIA device file has no link in /dev/char, and Docker uses systemd's cgroup driver (docker info)."""
    ctx.require(LINKS.probes()[0])
    if (change := LINKS.plan(ctx.facts)) and engine(ctx).cgroup_driver == "systemd":
        yield f"{change.what}: {change.have}"


def not_started(ctx: AuditContext) -> Iterator[str]:
    """A container with the restart policy always or unless-stopped is stopped, and its start ended with an error."""
    for line in ctx.text(NOT_STARTED).splitlines():
        name, policy, code, error = (*line.removeprefix("/").split(" ", 3), "", "", "")[:4]
        if error:
            yield f"{name} ({policy}), ended with {code}: {error}"
            yield from known_cause(ctx, (error,))


def flushed(ctx: AuditContext) -> Iterator[str]:
    """Docker runs with iptables, but a table of the host's firewall has none of Docker's rules."""
    yield from without(ctx.text(FIREWALL))


#: failure rule for an option in both daemon.json and dockerd's command line. It precedes the rule daemon-json, which
#: also matches such a message.
TWICE = FailureRule(
    "daemon-json-twice",
    r"directives are specified both as a flag and in the",
    "dockerd does not start if daemon.json and its command line both set an option{, here KEYS|}, such as hosts and"
    " the packaged unit's -H fd://",
    "Remove {KEYS|the key} from /etc/docker/daemon.json, or the option from the unit (systemctl edit docker)",
    "moby/moby#25471, #37871",
    names=(r"in the configuration file: (?P<keys>[\w-]{2,40}):", r"^(?P<keys>[\w-]{2,40}): in /"),
    sign=Sign("container", doubled, (*SETTINGS, COMMAND)),
    treatment=ForPeople(),
)

DOCKER_RULES = (
    FailureRule(
        "container-not-started",
        "",
        "a container that Docker should keep running failed to start, for example at a boot before the driver or a"
        " disk was ready, and Docker does not retry",
        "Fix the error in the line, then run docker start NAME. If the container only started too early at boot,"
        " docker start NAME is enough. Remove an unneeded container with docker rm NAME",
        "dockerd(8), restart policies; NVIDIA/nvidia-docker#526, NixOS/nixpkgs#353059",
        names=(r"^(?P<name>\S{1,100}) \((?:always|unless-stopped)\), ended",),
        sign=Sign("container", not_started, (NOT_STARTED,), grave=False),
    ),
    FailureRule(
        "docker-group-gone",
        r"docker\.socket[^\n]*(?:status=216/GROUP|step GROUP)|Failed to resolve group docker:[^\n]*"
        r"|[Uu]nknown group '?docker'?",
        "the group of docker.socket (docker) does not exist, so that neither the socket nor Docker, which requires"
        " it, starts",
        "Recreate the group with groupadd --system docker, and add its members again (usermod -aG docker NAME;"
        " /etc/group- has the old list). Then run systemctl reset-failed docker.socket docker.service, and systemctl"
        " start docker.socket docker.service",
        "systemd.socket(5), SocketGroup; moby/moby#29179",
        sign=Sign("container", group_gone, (DPKG, HOOK_THERE, UNITS.states)),
        treatment=ForPeople(),
        transient=False,
    ),
    FailureRule(
        "docker-is-podman",
        r"Emulate Docker CLI using podman",
        "the command docker of this host belongs to podman (the package podman-docker), so that Docker's settings"
        " (daemon.json, the runtime nvidia, --gpus) have no effect",
        "To use Docker, remove podman-docker (apt-get remove podman-docker keeps podman), then provision: the"
        " container role installs Docker. To use podman, give containers GPUs by CDI (podman run --device"
        " nvidia.com/gpu=all), and remove the role container from the host",
        "Debian podman-docker; containers/podman docker/docker.in; NVIDIA/nvidia-container-toolkit#46",
        sign=Sign("container", podman_instead, (DPKG,), grave=False),
        treatment=ForPeople(),
        weight="wrapper",
    ),
    FailureRule(
        "docker-snap",
        r"could not select device driver[^\n]*(?:\n[^\n]*){0,10}?\n[^\n]*(?:snap\.docker|/snap/docker|docker-snap)"
        r"|(?:snap\.docker|/snap/docker/)[^\n]*(?:nvidia|could not select device driver)",
        "Docker is the snap, which is confined and has no access to the toolkit and the driver's libraries",
        "Move its data and remove it (snap remove docker). Then provision again, which installs the stack's Docker",
        "NVIDIA/nvidia-docker#1034, #1243",
        sign=Sign("container", snap, (SNAP_DOCKER,)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "docker-context",
        "",
        "root's docker command connects to another daemon than this host's, which Hostwright configures",
        "Run docker context use default as root, or remove DOCKER_HOST and DOCKER_CONTEXT from the file in the"
        " evidence. Do the same for other users whose docker fails (docker context ls)",
        "NVIDIA/nvidia-container-toolkit#814",
        sign=Sign("container", led_elsewhere, (DPKG, CONTEXT), grave=False),
        treatment=ForPeople(),
    ),
    FailureRule(
        "docker-gone",
        "",
        "Docker was removed from a host that had it",
        "Find out who removed it. To install it again, provision",
        "the host's release record",
        sign=Sign("container", gone, (DPKG, SNAP_DOCKER, RELEASE), provision=True),
    ),
    FailureRule(
        "docker-stopped",
        r"Cannot connect to the Docker daemon|Is the docker daemon running\?",
        "Docker was stopped, or never started since boot",
        "Provision again: the container role enables and starts it. To keep it stopped, lock the host",
        "systemctl(1)",
        variants=(
            Variant(
                "left out at the boot to break an ordering cycle",
                "systemd did not start Docker at boot, to break an ordering cycle between units",
                "Break the cycle first (the rule unit-ordering-cycle names its units); otherwise each boot repeats"
                " this. Until then, provision starts Docker",
            ),
        ),
        sign=Sign("container", stopped, (DPKG, UNITS.states), provision=True),
        weight="consequence",
    ),
    FailureRule(
        "docker-restart-due",
        "",
        "Docker reads daemon.json and searches the toolkit only at its start, but one of them changed since",
        "Provision again: the container role restarts Docker, by default only on an idle host",
        "dockerd(8)",
        sign=Sign("container", restart_due, grave=False, provision=True),
    ),
    FailureRule(
        "dev-char-links-missing",
        "",
        "systemd finds a container's devices through links in /dev/char. Without them, the next systemctl"
        " daemon-reload removes the GPUs from running containers",
        "Provision again: the container role creates the links, now and at every boot",
        "NVIDIA/nvidia-docker#1730, NVIDIA/nvidia-container-toolkit#48",
        sign=Sign("container", links_missing, (*LINKS.probes(), INFO), provision=True),
    ),
)
