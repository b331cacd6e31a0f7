"""Failures of the driver's daemons: nvidia-persistenced, and Fabric Manager on a host with NVSwitches."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.failures import AuditContext, Covers, FailureRule, Sign, Stuck, Units, Unread, known_cause
from hostwright.resources import PCI
from hostwright.standard.roles.driver.states.fabric import FABRIC, FABRIC_MANAGER, MANAGED, fabric_of

PERSISTENCED = "nvidia-persistenced.service"
UNITS = Units((PERSISTENCED, FABRIC_MANAGER))


def driver_units_failed(ctx: AuditContext) -> Iterator[str]:
    """nvidia-persistenced has failed, or Fabric Manager on a host with NVSwitches."""
    ctx.require(PCI)
    ctx.require(FABRIC)
    try:
        switches = fabric_of(ctx.facts) in MANAGED
    except ValueError:
        raise Unread("the list of PCI devices cannot be read") from None
    for name in (PERSISTENCED, FABRIC_MANAGER) if switches else (PERSISTENCED,):
        unit = UNITS.unit(ctx, name)
        if unit.failed:
            yield str(unit)
            yield from UNITS.last_words(ctx, name)
            yield from known_cause(ctx, UNITS.journal(ctx, name), "start-limit")


UNIT_RULES = (
    FailureRule(
        "driver-unit-failed",
        "",
        "a daemon of the driver was started and ended with an error",
        "If the plan lists changes of the driver, provision again: the role starts its daemons when the driver is "
        "healthy. Otherwise check the journal (journalctl -u UNIT -n 50), fix the cause, then run systemctl restart "
        "UNIT",
        "systemd.service(5)",
        names=(r"^(?P<unit>\S{1,100}\.(?:service|socket)) is ",),
        sign=Sign("driver", driver_units_failed, (UNITS.states, UNITS.journals, PCI, FABRIC), provision=True),
        treatment=Stuck("a daemon of the driver failed"),
        covers=Covers(("other-unit-failed",), lambda _: UNITS.names),
    ),
)
