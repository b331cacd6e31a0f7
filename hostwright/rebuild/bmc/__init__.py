"""Control of a host's management controller (BMC) over Redfish: power, next boot, and status.

Example:

    bmc = read_bmc(host)
    with open_bmc(bmc) as controller:
        controller.boot_once("network")
        controller.cycle()
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hostwright.rebuild.bmc.errors import BmcDenied, BmcError, BmcRefused, BmcStuck, BmcUnreachable
from hostwright.rebuild.bmc.settings import Bmc, read_bmc

if TYPE_CHECKING:
    from hostwright.rebuild.bmc.controller import Controller, Power, Status
    from hostwright.rebuild.bmc.opening import Opener, open_bmc

__all__ = [
    "Bmc",
    "BmcDenied",
    "BmcError",
    "BmcRefused",
    "BmcStuck",
    "BmcUnreachable",
    "Controller",
    "Opener",
    "Power",
    "Status",
    "open_bmc",
    "read_bmc",
]

_LATER = {
    "Controller": "controller",
    "Opener": "opening",
    "Power": "controller",
    "Status": "controller",
    "open_bmc": "opening",
}


def __getattr__(name: str) -> Any:
    """Import ``name`` at its first use. sushy is imported only then, because most commands only read a BMC's
    settings.
    """
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
