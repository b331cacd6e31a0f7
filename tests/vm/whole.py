"""A virtual machine as the tests use it, and what its kernel and its programs printed, which is shown and kept."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from lab import machine as host
from lab.config import Machine
from lab.snapshots import shut_down
from lab.waiting import await_that
from tests.lab.conftest import FrontDoor
from tests.places import PROJECT

PRINTED = PROJECT / "tests" / "fixtures" / "kernel"
RECORD = "HOSTWRIGHT_RECORD_KERNEL"  #: set it to keep what was printed as fixtures
#: Takes the card off the bus, and puts it back.
UNPLUG = "echo 1 >/sys/bus/pci/devices/$(lspci -D -d 10de: | cut -d' ' -f1)/remove"
PLUG = "echo 1 >/sys/bus/pci/rescan; udevadm settle; lspci -d 10de: | grep -q ."
LOADED = "cat /sys/module/nvidia/version"
_HALT_S = 300.0
_LOOK_S = 1.0  # each look is a connection


@dataclass(frozen=True)
class Whole:
    """The machine, and the verbs on its inventory."""

    machine: Machine
    invoke: FrontDoor

    def ask(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run shell as root; how it ended."""
        return host.exec_in(self.machine, ["sh", "-c", script])

    def run(self, script: str) -> str:
        """Run shell as root, which must succeed; its output."""
        return host.console(self.machine, "sh", "-euc", script)

    def boot_id(self) -> str:
        """Which boot this is; empty while nobody answers."""
        return self.ask("cat /proc/sys/kernel/random/boot_id").stdout.strip()

    def modules(self) -> set[str]:
        """The modules in the kernel."""
        return {line.split()[0] for line in self.run("cat /proc/modules").splitlines()}

    def kernel_log(self, pattern: str) -> str:
        """The lines of the kernel's log since the boot that match, without their times."""
        return self.ask(f"dmesg | grep -iE '{pattern}' | sed 's/^\\[ *[0-9.]*\\] //'").stdout

    def reboot(self) -> None:
        """Reboot it from within, and wait until users can log in to the next boot."""
        before = self.boot_id()
        self.ask("systemctl --no-block reboot")
        silent = "the machine does not come back"
        await_that(lambda: self.boot_id() not in {"", before}, host.VM_BOOT_TIMEOUT_S, lambda: silent, look_s=_LOOK_S)
        host.wait_for_ssh(self.machine)

    def while_off(self, change: Callable[[Machine], None]) -> None:
        """Shut it down, change it, and start it again."""
        shut_down(self.machine, _HALT_S)
        change(self.machine)
        host.start(self.machine)
        host.wait_for_ssh(self.machine)

    def show(self, name: str, text: str) -> str:
        """Show what was printed; returns it."""
        print(f"\n--- {name}\n{text.rstrip()}", flush=True)
        return text

    def keep(self, name: str, text: str) -> str:
        """Show what the kernel or a tool of Debian's printed, and keep it as the fixture ``name`` if asked."""
        self.show(name, text)
        if os.environ.get(RECORD):
            PRINTED.mkdir(exist_ok=True)
            kernel = self.run("uname -rv").strip()
            head = f"# {datetime.now(UTC):%Y-%m-%d}, {kernel}, a virtual machine of the lab\n"
            (PRINTED / f"{name}.txt").write_text(head + text.rstrip() + "\n")
        return text


def both(done: subprocess.CompletedProcess[str]) -> str:
    """What a program printed."""
    return done.stdout + done.stderr
