"""Docker's units, and the unit that makes the links in /dev/char: failed, masked, or no longer restarted."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.failures import AuditContext, Covers, FailureRule, ForPeople, Sign, Stuck, Units, Unread, known_cause
from hostwright.standard.roles.container.engine import LINKS_UNIT
from hostwright.standard.roles.container.failures import state

DOCKER = ("docker.service", "containerd.service")
SOCKET = "docker.socket"  #: docker.service requires it
UNITS = Units((*DOCKER, LINKS_UNIT, SOCKET))


def too_often(ctx: AuditContext) -> Iterator[str]:
    """docker.service or containerd.service is failed, and its journal says that systemd no longer starts it."""
    for name in DOCKER:
        if (limited := UNITS.limited(ctx, name)) and not _explained(ctx, name):
            yield limited
            yield from UNITS.last_words(ctx, name)
            yield from known_cause(ctx, UNITS.journal(ctx, name), "start-limit")


def masked(ctx: AuditContext) -> Iterator[str]:
    """docker.service or containerd.service is masked, or docker.socket is and Docker, which needs it, does not run."""
    runs = UNITS.unit(ctx, DOCKER[0]).active == "active"
    for name in DOCKER if runs else (*DOCKER, SOCKET):
        if UNITS.unit(ctx, name).load == "masked":
            yield f"{name} is masked"


def container_units_failed(ctx: AuditContext) -> Iterator[str]:
    """docker.service or containerd.service failed, or is restarted again and again, and daemon.json is not why."""
    for unit in (UNITS.unit(ctx, name) for name in DOCKER):
        if unit.failed and not UNITS.limited(ctx, unit.name) and not _explained(ctx, unit.name):
            yield str(unit)
            yield from UNITS.last_words(ctx, unit.name)
            yield from known_cause(ctx, UNITS.journal(ctx, unit.name), "start-limit")


def links_unit_failed(ctx: AuditContext) -> Iterator[str]:
    """The unit that makes the links in /dev/char at boot is failed."""
    links = UNITS.unit(ctx, LINKS_UNIT)
    if links.failed:
        yield str(links)
        yield from UNITS.last_words(ctx, LINKS_UNIT)


def _explained(ctx: AuditContext, name: str) -> bool:
    """Whether another failure says why Docker does not start: dockerd refuses its daemon.json."""
    try:
        return name == state.UNIT and bool(state.said_twice(ctx))
    except state.NotJson:
        return True
    except Unread:
        return False


UNIT_RULES = (
    FailureRule(
        "container-unit-failed",
        "",
        "Docker or containerd was started and ended with an error",
        "Read its journal (journalctl -u UNIT -n 50), fix the cause, then systemctl restart UNIT",
        "systemd.service(5)",
        names=(r"^(?P<unit>\S{1,100}\.(?:service|socket)) is ",),
        sign=Sign("container", container_units_failed, (UNITS.states, UNITS.journals)),
        treatment=Stuck("Docker or containerd failed"),
        covers=Covers(("other-unit-failed",), lambda _: UNITS.names),
    ),
    FailureRule(
        "docker-masked",
        "",
        "somebody masked a unit of Docker's, so that nothing can start it, not even provisioning",
        "Find out who did it and why, then systemctl unmask UNIT and provision again",
        "systemctl(1)",
        names=(r"^(?P<unit>\S{1,100}\.(?:service|socket)) is masked",),
        sign=Sign("container", masked, (UNITS.states,)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "dev-char-unit-failed",
        "",
        "the links in /dev/char, which keep the GPUs in containers, were not made at the last boot",
        "Read its journal (journalctl -u hostwright-nvidia-dev-char): usually the driver was not loaded yet;"
        " then systemctl restart hostwright-nvidia-dev-char",
        "NVIDIA/nvidia-container-toolkit#48",
        sign=Sign("container", links_unit_failed, (UNITS.states, UNITS.journals), grave=False),
    ),
)
