"""Power control of the lab's hosts through their BMCs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from hostwright.common.errors import LabError
from lab.bmc.faults import read_faults
from lab.bmc.installer import SEED_TIMEOUT_S, Installation
from lab.bmc.settings import read_settings, write_settings
from lab.config import Lab, Machine
from lab.machine import exec_in, power_off, running, start
from lab.records import find_machine
from lab.snapshots import shut_down


class Broken(Exception):
    """Error of a BMC with an injected fault."""


class Impossible(Exception):
    """Error for a request that the host's current state does not allow."""


class Hosts:
    """Power control of a lab's hosts. Each host handles one request at a time."""

    def __init__(self, lab: Lab, *, seed_timeout_s: float = SEED_TIMEOUT_S):
        self.lab = lab
        self._seed_timeout_s = seed_timeout_s
        self._installs: dict[str, Installation] = {}
        self._locks: dict[str, threading.RLock] = {}
        #: host → marker while the host shuts down for a graceful restart. A later request removes the marker.
        self._restarts: dict[str, object] = {}
        self._orders: dict[str, Callable[[Machine], None]] = {
            "On": self._turn_on,
            "ForceOn": self._turn_on,
            "ForceOff": self._turn_off,
            "GracefulShutdown": self._ask_to_shut_down,
            "ForceRestart": self._restart,
            "GracefulRestart": self._ask_to_restart,
        }

    def power(self, name: str) -> str:
        """Return the power state ``On`` or ``Off`` of a host. Raises `LabError` if the host does not exist."""
        time.sleep(read_faults(self.lab, name).delay_s)  # the injected fault of a slow BMC
        return "On" if self._says_on(find_machine(self.lab, name)) else "Off"

    def reset(self, name: str, order: str) -> None:
        """Perform a Redfish reset of type ``order`` on the host ``name``.

        Raises `LabError` for an unknown host, and `KeyError` for an unknown type. Raises `Broken` for an injected
        fault, and `Impossible` for a restart of a host that is off.
        """
        faults = read_faults(self.lab, name)
        time.sleep(faults.delay_s)  # the injected fault of a slow BMC
        if faults.reset_fails:
            raise Broken("the power controller does not respond (injected fault)")
        machine, carry_out = find_machine(self.lab, name), self._orders[order]
        with self._locks.setdefault(name, threading.RLock()):
            self._restarts.pop(name, None)
            carry_out(machine)

    def _is_on(self, machine: Machine) -> bool:
        installing = self._installs.get(machine.name)
        return (installing is not None and installing.alive) or running(machine)

    def _says_on(self, machine: Machine) -> bool:
        return read_faults(self.lab, machine.name).lies_on or self._is_on(machine)

    def _turn_on(self, machine: Machine) -> None:
        if self._is_on(machine) or read_faults(self.lab, machine.name).lies_on:
            return
        settings = read_settings(self.lab, machine.name)
        write_settings(self.lab, machine.name, settings.after_boot())
        if not settings.boots_installer():
            start(machine)
            return
        self._installs[machine.name] = Installation(machine, seed_timeout_s=self._seed_timeout_s)
        self._installs[machine.name].start()

    def _turn_off(self, machine: Machine) -> None:
        installing = self._installs.pop(machine.name, None)
        if installing is not None:
            installing.pull_plug()
        power_off(machine)

    def _restart(self, machine: Machine) -> None:
        if not self._says_on(machine):
            raise Impossible("the system is off: power it on instead")
        self._turn_off(machine)
        self._turn_on(machine)

    def _ask_to_shut_down(self, machine: Machine) -> None:
        """Request the shutdown without waiting for it, as a short press of the power button does."""
        if running(machine):
            exec_in(machine, ["systemctl", "--no-block", "poweroff"])
        else:
            self._turn_off(machine)  # the installer does not need an orderly shutdown

    def _ask_to_restart(self, machine: Machine) -> None:
        if not self._says_on(machine):
            raise Impossible("the system is off: power it on instead")
        this = self._restarts[machine.name] = object()
        threading.Thread(target=self._restart_gracefully, args=(machine, this), daemon=True).start()

    def _restart_gracefully(self, machine: Machine, this: object) -> None:
        try:
            shut_down(machine)
        except LabError as error:  # real hardware also keeps running if the operating system ignores the button
            print(f"bmc: {error}", flush=True)
            return
        with self._locks[machine.name]:
            if self._restarts.get(machine.name) is this:
                self._turn_off(machine)
                self._turn_on(machine)
