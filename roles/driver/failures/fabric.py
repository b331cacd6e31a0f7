"""Signs of Fabric Manager, without which CUDA does not start on a board with NVSwitches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import Sign
from hostwright.resources import DPKG, PCI, Installed, named_like
from hostwright.standard.roles.driver.failures.state import driver_of
from hostwright.standard.roles.driver.failures.units import FABRIC_MANAGER, UNITS
from hostwright.standard.roles.driver.states.gpu_use import nvswitches

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

PACKAGES = ("nvidia-fabricmanager-[0-9]*", "nvidia-fabricmanager", "cuda-drivers-fabricmanager*")
_NOTHING = "NV_WARN_NOTHING_TO_DO"


def other_version(ctx: AuditContext) -> Iterator[str]:
    """The host has NVSwitches, and Fabric Manager's package is not of the version of the driver in the kernel (where
    none is loaded, of the module on the disk).
    """
    driver = driver_of(ctx).loaded or driver_of(ctx).module
    if _switches(ctx) and driver:
        yield from (f"{name} {version}, driver {driver}" for name, version in _others(ctx, driver))


def not_running(ctx: AuditContext) -> Iterator[str]:
    """The host has NVSwitches, the driver is loaded, and nvidia-fabricmanager.service is not active, not failed, and
    not just starting.
    """
    if not _switches(ctx) or not driver_of(ctx).loaded or _others(ctx, driver_of(ctx).loaded):
        return
    manager = UNITS.unit(ctx, FABRIC_MANAGER)
    if manager.failed or manager.active in {"active", "activating", "reloading"}:
        return
    yield str(manager) if manager.load == "loaded" else f"{FABRIC_MANAGER}: {manager.load}"


def nothing_to_do(ctx: AuditContext) -> Iterator[str]:
    """The host has no NVSwitches, and nvidia-fabricmanager.service runs or failed."""
    manager = UNITS.unit(ctx, FABRIC_MANAGER)
    if _switches(ctx) or not (manager.failed or manager.active == "active"):
        return
    yield str(manager)
    yield from [line for line in UNITS.journal(ctx, FABRIC_MANAGER) if _NOTHING in line][-1:]


def _switches(ctx: AuditContext) -> int:
    ctx.require(PCI)
    return nvswitches(ctx.facts)


def is_of_fabric(row: Installed) -> bool:
    """Fabric Manager's packages that are present."""
    return row.present and named_like(row.name, PACKAGES)


def _others(ctx: AuditContext, driver: str) -> list[tuple[str, str]]:
    """Fabric Manager's packages with another version than the driver's."""
    rows = ctx.packages_where(is_of_fabric)
    return [(row.name, row.version) for row in rows if row.version.partition("-")[0] != driver]


VERSION_SIGN = Sign("driver", other_version, (PCI, DPKG), provision=True)
NOT_READY_SIGN = Sign("driver", not_running, (PCI, DPKG, UNITS.states), provision=True)
NOTHING_SIGN = Sign("driver", nothing_to_do, (PCI, UNITS.states, UNITS.journals), grave=False)
