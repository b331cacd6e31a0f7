"""Signs of failures of Docker's systemd units, and of the unit for the links in /dev/char."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from hostwright.failures import AuditContext, Covers, FailureRule, ForPeople, Sign, Stuck, Units, Unread, known_cause
from hostwright.resources import Probe
from hostwright.roles import Pattern, sh_file
from hostwright.standard.roles.container.engine import LINKS_UNIT
from hostwright.standard.roles.container.failures import state

DOCKER = ("docker.service", "containerd.service")
SOCKET = "docker.socket"
UNITS = Units((*DOCKER, LINKS_UNIT, SOCKET))
FILES = Probe(sh_file(__file__, "unitfiles.sh", units=(*DOCKER, SOCKET)), root=True)
_COVERS = Pattern(r"unit (\S{1,100}) (/etc/\S{1,300}) of (/\S{1,300})")
_GONE = Pattern(r"gone (\S{1,100}) (/\S{1,300}) (.*)")
_REPLACED = Pattern(r"replaced (\S{1,100}) (/\S{1,300})")


def too_often(ctx: AuditContext) -> Iterator[str]:
    """docker.service or containerd.service has failed, and its journal reports that systemd no longer starts it."""
    for name in DOCKER:
        if (limited := UNITS.limited(ctx, name)) and not _explained(ctx, name):
            yield limited
            yield from UNITS.last_words(ctx, name)
            yield from known_cause(ctx, UNITS.journal(ctx, name), "start-limit")


def masked(ctx: AuditContext) -> Iterator[str]:
    """docker.service, containerd.service or the socket of a stopped Docker is masked."""
    runs = UNITS.unit(ctx, DOCKER[0]).active == "active"
    for name in DOCKER if runs else (*DOCKER, SOCKET):
        if UNITS.unit(ctx, name).load == "masked":
            yield f"{name} is masked"


def container_units_failed(ctx: AuditContext) -> Iterator[str]:
    """docker.service or containerd.service failed or restarts repeatedly, and daemon.json is not the cause."""
    for unit in (UNITS.unit(ctx, name) for name in DOCKER):
        if unit.failed and not UNITS.limited(ctx, unit.name) and not _explained(ctx, unit.name):
            yield str(unit)
            yield from UNITS.last_words(ctx, unit.name)
            yield from known_cause(ctx, UNITS.journal(ctx, unit.name), "start-limit")


def file_missing(ctx: AuditContext) -> Iterator[str]:
    """A unit of Docker or containerd names a missing EnvironmentFile= or a missing program in ExecStart=."""
    lines = ctx.text(FILES).splitlines()
    covering = {match[2]: match[3] for line in lines if (match := _COVERS.fullmatch(line))}
    for match in filter(None, map(_GONE.fullmatch, lines)):
        files = match[3].split()
        named = f"; {' '.join(files)} names it" if files else ""
        covered = next((f", in place of the package's {covering[file]}" for file in files if file in covering), "")
        yield f"{match[1]} needs {match[2]}, which is not there{named}{covered}"


def program_replaced(ctx: AuditContext) -> Iterator[str]:
    """The program of the running docker.service or containerd.service was replaced on disk (/proc/PID/exe)."""
    for match in filter(None, map(_REPLACED.fullmatch, ctx.text(FILES).splitlines())):
        yield f"{match[1]} runs from {match[2]}, which was replaced since"


def links_unit_failed(ctx: AuditContext) -> Iterator[str]:
    """The unit that creates the links in /dev/char at boot has failed."""
    links = UNITS.unit(ctx, LINKS_UNIT)
    if links.failed:
        yield str(links)
        yield from UNITS.last_words(ctx, LINKS_UNIT)


def _explained(ctx: AuditContext, name: str) -> bool:
    with suppress(Unread):
        if any(line.startswith(f"{name} ") for line in file_missing(ctx)):
            return True
    try:
        return name == state.UNIT and bool(state.said_twice(ctx))
    except state.NotJson:
        return True
    except Unread:
        return False


UNIT_RULES = (
    FailureRule(
        "unit-names-missing-file",
        "",
        "UNIT does not start, now or at its next start: it needs the missing file FILE",
        "If {WHERE, which names it,|the file that names it} is a copy in /etc/systemd/system that overrides the"
        " package's unit, remove the copy, or the line in it. Otherwise restore FILE (apt-get install --reinstall with"
        " the package from dpkg -S). Then run systemctl daemon-reload, systemctl reset-failed UNIT and systemctl"
        " start UNIT",
        "systemd.exec(5), EnvironmentFile=; systemd.unit(5), unit file load path; docker/for-linux#162",
        names=(
            r"^(?P<unit>\S{1,100}) needs (?P<file>/[^\s,;]{1,300})",
            r"; (?P<where>/[^\s,;]{1,300}) names it",
        ),
        sign=Sign("container", file_missing, (FILES,)),
        treatment=ForPeople(),
        covers=Covers(("other-unit-failed",), lambda _: UNITS.names),
    ),
    FailureRule(
        "program-replaced",
        r"(?:fork/)?exec[: ]{1,2}\W{0,3}/\S{0,200}(?:docker|containerd|runc)\S{0,40} \(deleted\)",
        "a daemon of Docker still runs from a program that was replaced on disk, for example by an upgrade. It cannot"
        " start its other programs any more, so that containers and calls fail",
        "Restart it when no container works that a restart ends (docker info shows live-restore): systemctl restart"
        " containerd docker. Upgrades that do not restart services cause this (needrestart, policy-rc.d)",
        "moby cmd/dockerd; needrestart(1); proc(5), /proc/pid/exe",
        sign=Sign("container", program_replaced, (FILES,), grave=False),
        transient=False,
    ),
    FailureRule(
        "container-unit-failed",
        "",
        "Docker or containerd was started and ended with an error",
        "Read its journal (journalctl -u UNIT -n 50), fix the cause, then run systemctl restart UNIT",
        "systemd.service(5)",
        names=(r"^(?P<unit>\S{1,100}\.(?:service|socket)) is ",),
        sign=Sign("container", container_units_failed, (UNITS.states, UNITS.journals)),
        treatment=Stuck("Docker or containerd failed"),
        covers=Covers(("other-unit-failed",), lambda _: UNITS.names),
    ),
    FailureRule(
        "docker-masked",
        "",
        "a unit of Docker is masked, so that nothing can start it, not even provisioning",
        "Find out who masked it and why. Then run systemctl unmask UNIT and provision again",
        "systemctl(1)",
        names=(r"^(?P<unit>\S{1,100}\.(?:service|socket)) is masked",),
        sign=Sign("container", masked, (UNITS.states,)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "dev-char-unit-failed",
        "",
        "the links in /dev/char, which keep the GPUs in containers, were not created at the last boot",
        "Read its journal (journalctl -u hostwright-nvidia-dev-char): usually the driver was not loaded yet. Then run"
        " systemctl restart hostwright-nvidia-dev-char",
        "NVIDIA/nvidia-container-toolkit#48",
        sign=Sign("container", links_unit_failed, (UNITS.states, UNITS.journals), grave=False),
    ),
)
