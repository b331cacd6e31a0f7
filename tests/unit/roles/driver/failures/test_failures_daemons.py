"""The driver's daemons that failed are seen where the host needs them."""

from __future__ import annotations

from hostwright.plan.host.hostfacts import PCI
from hostwright.standard.roles.driver.failures import units as daemons
from hostwright.standard.roles.driver.failures.units import UNITS as DAEMONS
from hostwright.standard.roles.driver.states.fabric import FABRIC_MANAGER
from tests.unit.support.auditcontexts import evidence, show, shown

EXITED = {"active": "failed", "sub": "failed", "result": "exit-code"}


def test_fabric_manager_may_fail_where_there_is_no_nvswitch() -> None:
    text = shown(fabricmanager=show(FABRIC_MANAGER, **EXITED))
    assert evidence("driver-unit-failed", {DAEMONS.states: text}) == []
    assert evidence("driver-unit-failed", {DAEMONS.states: text, PCI: "0x10de 0x068000 0x1af1\n"})
    assert evidence("driver-unit-failed", {DAEMONS.states: shown(persistenced=show(daemons.PERSISTENCED, **EXITED))})
