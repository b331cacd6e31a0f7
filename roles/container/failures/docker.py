"""Signs of a Docker that cannot start, cannot give GPUs to containers, or will lose them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, ForPeople, Sign, Unread, Variant, known_cause
from hostwright.resources import DPKG, RELEASE, Disturbing, Probe, RestartedAfter, release
from hostwright.roles import sh, sh_file
from hostwright.standard.roles.base.failures.host import left_out
from hostwright.standard.roles.container.engine import DAEMON_JSON, ENGINES, FIREWALL, SNAP_DOCKER, without
from hostwright.standard.roles.container.failures.state import (
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
from hostwright.standard.roles.container.running import LOCAL_DOCKER
from hostwright.standard.roles.driver.states.device_files import DeviceLinks

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

LINKS = DeviceLinks()
RUNTIME = "nvidia"
HOOK = "nvidia-container-runtime-hook"  #: Docker looks for it when it starts, and supports --gpus only with it
OTHER_RUNTIMES = ("containerd.io", "cri-o", "podman-docker")  #: packages that a host may have in Docker's place
#: ``NAME POLICY EXIT ERROR`` of each container that Docker is to keep running, is not running, and could not be started
_START = "{{if .State.Error}}{{.Name}} {{.HostConfig.RestartPolicy.Name}} {{.State.ExitCode}} {{.State.Error}}{{end}}"
NOT_STARTED = Probe(
    f"systemctl is-active --quiet {UNIT} || exit 0\n"
    f"timeout -k 1 10 {LOCAL_DOCKER} ps -aq --filter status=exited --filter status=created | head -n 50 |\n"
    + sh(f"  xargs -r timeout -k 1 10 {LOCAL_DOCKER} inspect --format %s |\n", _START)
    + "  grep -E '^/[^ ]+ (always|unless-stopped) ' | cut -c 1-500; exit 0",
    root=True,
)
#: The hook's path; then ``gone PATH`` of each runtime of daemon.json whose program is not there, and ``group NAME``
#: where the group to which docker.socket gives its socket does not exist
HOOK_THERE = Probe(sh_file(__file__, "hook.sh", hook=HOOK, settings=DAEMON_JSON, socket=SOCKET))


def podman_instead(ctx: AuditContext) -> Iterator[str]:
    """podman-docker is installed, and no package of Docker."""
    row = ctx.packages.get("podman-docker")
    if row and row.present and not engine_package(ctx):
        yield f"podman-docker {row.version} is installed, and no package of Docker"


def snap(ctx: AuditContext) -> Iterator[str]:
    """/snap/docker/current is there."""
    if ctx.answer(SNAP_DOCKER).ok:
        yield f"/snap/docker/current leads to {ctx.answer(SNAP_DOCKER).strip()}"


def gone(ctx: AuditContext) -> Iterator[str]:
    """The release record says that the host had Docker, and dpkg knows no package of it, configured or not, nor is it
    the snap; and no runtime of others stands in its place (containerd.io without Docker, as Kubernetes has it)."""
    ctx.require(RELEASE)
    role = release.read(ctx.facts).get("roles", {}).get("container")
    interrupted = any(row.broken for name in ENGINES if (row := ctx.packages.get(name)))
    others = (ctx.packages.get(name) for name in OTHER_RUNTIMES)
    if any(row and row.present for row in others):
        return
    if role and not engine_package(ctx) and not interrupted and not ctx.answer(SNAP_DOCKER).ok:
        yield "no package of Docker is installed"


def stopped(ctx: AuditContext) -> Iterator[str]:
    """Docker is installed, its unit may be started, it is inactive and not about to be started, and docker.socket,
    which it requires, has not failed."""
    shown = UNITS.unit(ctx, UNIT)
    startable = (
        shown.load == "loaded" and not shown.queued and not any(masked(ctx)) and not UNITS.unit(ctx, SOCKET).failed
    )
    if engine_package(ctx) and startable and shown.active == "inactive":
        yield str(shown) + (", left out at the boot to break an ordering cycle" if UNIT in left_out(ctx) else "")


def no_hook(ctx: AuditContext) -> Iterator[str]:
    """Docker is installed, and the toolkit's program that Docker looks for is not on the host."""
    there = [line for line in ctx.text(HOOK_THERE).splitlines() if line.startswith("/")]
    if engine_package(ctx) and not there and not any(own_runtime_gone(ctx)):
        yield f"{HOOK} is not there"


def own_runtime_gone(ctx: AuditContext) -> Iterator[str]:
    """/etc/docker/daemon.json names a runtime of NVIDIA's, and the program that it leads to is not on the host."""
    yield from (line for program, line in _runtimes_gone(ctx) if RUNTIME in program)


def other_runtime_gone(ctx: AuditContext) -> Iterator[str]:
    """/etc/docker/daemon.json names a runtime of others, and the program that it leads to is not on the host."""
    yield from (line for program, line in _runtimes_gone(ctx) if RUNTIME not in program)


def _runtimes_gone(ctx: AuditContext) -> Iterator[tuple[str, str]]:
    """The program of each runtime in daemon.json that is not on the host, and the evidence of it."""
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
    """Docker is installed, and the group to which docker.socket gives its socket (SocketGroup) does not exist."""
    if not engine_package(ctx):
        return
    for line in ctx.text(HOOK_THERE).splitlines():
        if line.startswith("group "):
            shown = UNITS.unit(ctx, SOCKET)
            yield f"there is no group {line.removeprefix('group ')}, which {SOCKET} names; {shown}"


def not_json(ctx: AuditContext) -> Iterator[str]:
    """/etc/docker/daemon.json is there and cannot be read as a JSON object."""
    try:
        settings(ctx)
    except NotJson as error:
        yield f"{DAEMON_JSON}: {error}"
        yield from _failed(ctx)


def doubled(ctx: AuditContext) -> Iterator[str]:
    """A key of /etc/docker/daemon.json is an option of dockerd's command line as well (systemctl cat docker)."""
    try:
        keys = said_twice(ctx)
    except NotJson:
        return  # a failure of its own
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
        yield f"Docker knows the runtimes {', '.join(engine(ctx).runtimes)}"


def restart_due(ctx: AuditContext) -> Iterator[str]:
    """Docker was started before its daemon.json or the toolkit's packages were last changed, and these are in order."""
    resources = (state for role in ctx.desired.roles for state in role.resources)
    inner = (state.resource if isinstance(state, Disturbing) else state for state in resources)
    for restart in (state for state in inner if isinstance(state, RestartedAfter) and state.unit == UNIT):
        newer = ctx.answer(restart.probes()[0]).text.splitlines()
        if newer and _in_order(ctx, restart):
            yield from (f"{path} is newer than the running Docker" for path in newer)


def _in_order(ctx: AuditContext, restart: RestartedAfter) -> bool:
    """Whether a restart alone is enough: what Docker reads is as desired, and no other failure is about the same."""
    try:
        if any(state.plan(ctx.facts) for state in restart.inputs) or said_twice(ctx) or any(runtime_unknown(ctx)):
            return False
    except NotJson:
        return False
    except (KeyError, Unread):  # part of it was not probed, or Docker does not answer
        return True
    return True


def _failed(ctx: AuditContext) -> Iterator[str]:
    """Docker's state, if it has already failed because of this."""
    if UNITS.states in ctx.facts and (shown := UNITS.unit(ctx, UNIT)).failed:
        yield str(shown)


def links_missing(ctx: AuditContext) -> Iterator[str]:
    """An NVIDIA device file has no link in /dev/char, and Docker (docker info) lets systemd make its cgroups."""
    ctx.require(LINKS.probes()[0])
    if (change := LINKS.plan(ctx.facts)) and engine(ctx).cgroup_driver == "systemd":
        yield f"{change.what}: {change.have}"


def not_started(ctx: AuditContext) -> Iterator[str]:
    """A container with the restart policy always or unless-stopped does not run, and its start ended with an error."""
    for line in ctx.text(NOT_STARTED).splitlines():
        name, policy, code, error = (*line.removeprefix("/").split(" ", 3), "", "", "")[:4]
        if error:
            yield f"{name} ({policy}), ended with {code}: {error}"
            yield from known_cause(ctx, (error,))


def flushed(ctx: AuditContext) -> Iterator[str]:
    """Docker runs and keeps its rules with iptables, and a table of the host's firewall has none of them."""
    yield from without(ctx.text(FIREWALL))


#: matches before daemon-json, which is about the same file
TWICE = FailureRule(
    "daemon-json-twice",
    r"directives are specified both as a flag and in the",
    "dockerd does not start when a setting{, here KEYS,|} stands in daemon.json and on its command line, such as hosts"
    " beside the -H fd:// of the packaged unit",
    "Take {KEYS|the key} out of /etc/docker/daemon.json, or the option out of the unit (systemctl edit docker)",
    "moby/moby#25471, #37871",
    names=(r"in the configuration file: (?P<keys>[\w-]{2,40}):", r"^(?P<keys>[\w-]{2,40}): in /"),
    sign=Sign("container", doubled, (*SETTINGS, COMMAND)),
    treatment=ForPeople(),
)

DOCKER_RULES = (
    FailureRule(
        "container-not-started",
        "",
        "a container that Docker is to keep running could not be started, as at a boot before the driver or a disk was"
        " there, and Docker does not try again",
        "Fix what the line says, then docker start NAME; where it started too early at the boot, that alone is enough."
        " One that nobody needs any more: docker rm NAME",
        "dockerd(8), restart policies; NVIDIA/nvidia-docker#526, NixOS/nixpkgs#353059",
        names=(r"^(?P<name>\S{1,100}) \((?:always|unless-stopped)\), ended",),
        sign=Sign("container", not_started, (NOT_STARTED,), grave=False),
    ),
    FailureRule(
        "docker-group-gone",
        r"docker\.socket[^\n]*(?:status=216/GROUP|step GROUP)|Failed to resolve group docker:[^\n]*"
        r"|[Uu]nknown group '?docker'?",
        "the group to which docker.socket gives its socket (docker) does not exist, so that neither the socket nor"
        " Docker, which requires it, starts",
        "Make it again: groupadd --system docker; put those back into it who were in it (usermod -aG docker NAME; old"
        " lists are in /etc/group-); then systemctl reset-failed docker.socket docker.service, and systemctl start"
        " docker.socket docker.service",
        "systemd.socket(5), SocketGroup; moby/moby#29179",
        sign=Sign("container", group_gone, (DPKG, HOOK_THERE, UNITS.states)),
        treatment=ForPeople(),
        transient=False,
    ),
    FailureRule(
        "docker-is-podman",
        r"Emulate Docker CLI using podman",
        "the command docker of this host is podman's (the package podman-docker): what is set up for Docker"
        " (daemon.json, the runtime nvidia, --gpus) does not reach it",
        "Where the host is to have Docker, take podman-docker away (apt-get remove podman-docker; podman stays), then"
        " provision: the container role installs Docker. Where podman is meant, give containers their GPUs by CDI"
        " (podman run --device nvidia.com/gpu=all), and take the host out of the role container",
        "Debian podman-docker; containers/podman docker/docker.in; NVIDIA/nvidia-container-toolkit#46",
        sign=Sign("container", podman_instead, (DPKG,), grave=False),
        treatment=ForPeople(),
        weight="wrapper",
    ),
    FailureRule(
        "docker-snap",
        r"could not select device driver[^\n]*(?:\n[^\n]*){0,10}?\n[^\n]*(?:snap\.docker|/snap/docker|docker-snap)"
        r"|(?:snap\.docker|/snap/docker/)[^\n]*(?:nvidia|could not select device driver)",
        "Docker is the snap, which is confined and sees neither the toolkit nor the driver's libraries",
        "Move its data and remove it (snap remove docker), then provision again: the container role installs another",
        "NVIDIA/nvidia-docker#1034, #1243",
        sign=Sign("container", snap, (SNAP_DOCKER,)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "docker-context",
        "",
        "root's docker command goes to another daemon than this host's own, which Hostwright asks and sets up",
        "As root: docker context use default, or take DOCKER_HOST and DOCKER_CONTEXT out of the file that the evidence"
        " names; the same for other users whose docker fails (docker context ls)",
        "NVIDIA/nvidia-container-toolkit#814",
        sign=Sign("container", led_elsewhere, (DPKG, CONTEXT), grave=False),
        treatment=ForPeople(),
    ),
    FailureRule(
        "docker-gone",
        "",
        "Docker was removed from a host that had it",
        "Ask who removed it; provision again when it shall be there",
        "the host's release record",
        sign=Sign("container", gone, (DPKG, SNAP_DOCKER, RELEASE), provision=True),
    ),
    FailureRule(
        "docker-stopped",
        r"Cannot connect to the Docker daemon|Is the docker daemon running\?",
        "Docker was stopped, or never started since boot",
        "Provision again: the container role enables and starts it; when it is meant to stand still, lock the host",
        "systemctl(1)",
        variants=(
            Variant(
                "left out at the boot to break an ordering cycle",
                "Docker was not started at the boot: units wait for each other in a circle with it, and systemd left it"
                " out",
                "Break the circle first (unit-ordering-cycle names the units), else each boot does it again; provision"
                " starts Docker until then",
            ),
        ),
        sign=Sign("container", stopped, (DPKG, UNITS.states), provision=True),
        weight="consequence",
    ),
    FailureRule(
        "docker-restart-due",
        "",
        "Docker reads daemon.json and looks for the toolkit only when it starts, and both changed since",
        "Provision again: the container role restarts Docker, when the host is idle unless it is told otherwise",
        "dockerd(8)",
        sign=Sign("container", restart_due, grave=False, provision=True),
    ),
    FailureRule(
        "dev-char-links-missing",
        "",
        "systemd finds a container's devices through links in /dev/char; without them the next systemctl daemon-reload"
        " takes the GPUs from running containers",
        "Provision again: the container role makes the links, now and at every boot",
        "NVIDIA/nvidia-docker#1730, NVIDIA/nvidia-container-toolkit#48",
        sign=Sign("container", links_missing, (*LINKS.probes(), INFO), provision=True),
    ),
)
