"""Signs of failures in the connection between GPUs by NVLink and NVSwitches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import Sign
from hostwright.resources import DPKG, PCI, Installed, named_like
from hostwright.standard.roles.driver.failures.cards.memory import card
from hostwright.standard.roles.driver.failures.state import driver_of
from hostwright.standard.roles.driver.failures.units import UNITS
from hostwright.standard.roles.driver.gpus import smi
from hostwright.standard.roles.driver.states.fabric import FABRIC, FABRIC_MANAGER, MANAGED, fabric_of, modules_lacking

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

PACKAGES = ("nvidia-fabricmanager-[0-9]*", "nvidia-fabricmanager", "cuda-drivers-fabricmanager*")
_NOTHING = "NV_WARN_NOTHING_TO_DO"


def other_version(ctx: AuditContext) -> Iterator[str]:
    """The host has its own switches, and Fabric Manager's package does not have the version of the loaded driver (or,
    if none is loaded, of the module on disk).
    """
    driver = driver_of(ctx).loaded or driver_of(ctx).module
    if _switches(ctx) and driver:
        yield from (f"{name} {version}, driver {driver}" for name, version in _others(ctx, driver))


def not_running(ctx: AuditContext) -> Iterator[str]:
    """The host has its own switches (NVSwitches, or an NVLink 5 board), the driver is loaded, and
    nvidia-fabricmanager.service is neither active, failed nor starting.
    """
    if not _switches(ctx) or not driver_of(ctx).loaded or _others(ctx, driver_of(ctx).loaded):
        return
    manager = UNITS.unit(ctx, FABRIC_MANAGER)
    if manager.failed or manager.active in {"active", "activating", "reloading"}:
        return
    yield str(manager) if manager.load == "loaded" else f"{FABRIC_MANAGER}: {manager.load}"


def nothing_to_do(ctx: AuditContext) -> Iterator[str]:
    """The host has no switches of its own (a rack's switches are managed outside the host), and
    nvidia-fabricmanager.service runs or has failed.
    """
    manager = UNITS.unit(ctx, FABRIC_MANAGER)
    if _switches(ctx) or not (manager.failed or manager.active == "active"):
        return
    yield str(manager)
    yield from [line for line in UNITS.journal(ctx, FABRIC_MANAGER) if _NOTHING in line][-1:]


def not_joined(ctx: AuditContext) -> Iterator[str]:
    """A card reports its fabric as incomplete or failed, although Fabric Manager runs or the host needs none."""
    if _switches(ctx) and UNITS.unit(ctx, FABRIC_MANAGER).active != "active":
        return  # Fabric Manager is still starting, or another rule reports that the service failed
    outside = [gpu for gpu in smi(ctx).gpus if gpu.fabric is False]
    yield from (f"{card(gpu)}: fabric {gpu.fabric_state}" for gpu in outside)
    if outside and (lacking := modules_lacking(ctx.facts)):
        yield f"not loaded, and the board's bridges need them: {', '.join(lacking)}"


def apart(ctx: AuditContext) -> Iterator[str]:
    """The host's cards are in several cliques (groups of cards connected by NVLink), so cards of different cliques
    reach each other only over PCIe.
    """
    by_clique: dict[str, list[int]] = {}
    for gpu in smi(ctx).gpus:
        if gpu.fabric and gpu.clique:
            by_clique.setdefault(gpu.clique, []).append(gpu.index)
    if len(by_clique) > 1:
        yield from (f"clique {clique}: cards {', '.join(map(str, cards))}" for clique, cards in by_clique.items())


def _switches(ctx: AuditContext) -> bool:
    ctx.require(PCI)
    ctx.require(FABRIC)
    return fabric_of(ctx.facts) in MANAGED


def is_of_fabric(row: Installed) -> bool:
    """Return whether ``row`` is an installed package of Fabric Manager."""
    return row.present and named_like(row.name, PACKAGES)


def _others(ctx: AuditContext, driver: str) -> list[tuple[str, str]]:
    rows = ctx.packages_where(is_of_fabric)
    return [(row.name, row.version) for row in rows if row.version.partition("-")[0] != driver]


VERSION_SIGN = Sign("driver", other_version, (PCI, FABRIC, DPKG), provision=True)
NOT_READY_SIGN = Sign("driver", not_running, (PCI, FABRIC, DPKG, UNITS.states), provision=True)
NOTHING_SIGN = Sign("driver", nothing_to_do, (PCI, FABRIC, UNITS.states, UNITS.journals), grave=False)
NOT_JOINED_SIGN = Sign("gpu", not_joined, (PCI, FABRIC, UNITS.states))
APART_SIGN = Sign("gpu", apart, grave=False)
