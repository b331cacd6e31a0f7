"""Power on, power cycle or reboot of a host, and the wait until it answers."""

from __future__ import annotations

from hostwright.apply import events
from hostwright.apply.disturb import rebooting
from hostwright.apply.disturb.rebooting import read_reboot_timeout
from hostwright.common.errors import HostError
from hostwright.rebuild.host.clock import Phases
from hostwright.rebuild.host.tools import Tools
from hostwright.rebuild.rebuild import Way


class OrderFailed(HostError):
    """A BMC failed to carry out an order. The host's state is then unknown, so no other repair may follow."""


def switch(tools: Tools, phases: Phases, way: Way, *, by_bmc: bool, boot_id: str) -> None:
    """Power the host on or power-cycle it (``way``), and wait until the boot ID is no longer ``boot_id``.

    Without ``by_bmc``, a power cycle is a reboot over SSH. Raises ``OrderFailed`` if the BMC fails, and ``HostError``
    if the host does not answer in time.
    """
    if not by_bmc and way == "power cycle":
        with phases.phase("reboot"):
            _reboot(tools)
        return
    with phases.phase("power"):
        _order(tools, way)
    with phases.phase("reboot"):
        after = "being switched on" if way == "power on" else "a power cycle"
        rebooting.await_boot(
            tools.target.host, tools.connect, after=after, boot_id=boot_id,
            timeout_s=read_reboot_timeout(tools.target.host), emit=tools.run.emit,
        ).close()  # fmt: skip


def _reboot(tools: Tools) -> None:
    shell, seconds = rebooting.reboot(
        tools.connect(), tools.connect,
        timeout_s=read_reboot_timeout(tools.target.host), reason="rebuild", emit=tools.run.emit,
    )  # fmt: skip
    shell.close()
    tools.run.emit(events.Rebooted(tools.target.name, "rebuild", seconds))


def _order(tools: Tools, way: Way) -> None:
    if tools.ways.open_bmc is None:
        raise HostError(
            tools.target.name,
            "the host has no BMC in the inventory; set hostwright_bmc, or power-cycle the host by hand",
        )
    tools.run.emit(events.Waiting(tools.target.name, "its BMC"))
    try:
        with tools.ways.open_bmc() as bmc:
            if way == "power on":
                bmc.turn_on()
            else:
                bmc.cycle()
    except HostError as error:
        raise OrderFailed(error.host, error.sentence) from error
