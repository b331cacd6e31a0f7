"""The lab's simple installer, which runs when a BMC boots its host from the network or from virtual media.

It waits for the seed (settings of the new system), erases the disk, writes the lab's base image, applies the seed, and
boots the new system. Its messages go to the host's console.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from hostwright.common.errors import HostwrightError, LabError
from lab import network
from lab.bmc.faults import read_faults
from lab.bmc.fetching import NoAnswer, fetch
from lab.bmc.installing import install
from lab.bmc.netboot import seed_url
from lab.bmc.seeds import Seed, parse_autoinstall, parse_preseed
from lab.config import Machine
from lab.locking import locked

# seconds to wait for the seed. A real installer waits about as long before a prompt.
SEED_TIMEOUT_S = 60.0
_POLL_S = 0.25


class Installation:
    """A host in the installer, from power-on until the new system boots or the power is cut."""

    def __init__(self, machine: Machine, *, seed_timeout_s: float = SEED_TIMEOUT_S):
        self._machine, self._seed_timeout_s = machine, seed_timeout_s
        self._unplugged = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"install-{machine.name}", daemon=True)

    def start(self) -> None:
        """Start the installer in a thread."""
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the host is in the installer. After an error, the host stays there until the power is cut."""
        return self._thread.is_alive()

    def pull_plug(self) -> None:
        """Cut the power. The installer stops at any point, and the disk stays as it is."""
        self._unplugged.set()
        self._thread.join()

    def _run(self) -> None:
        machine = self._machine
        try:
            machine.console.write_text("")
            self._say("this is a stand-in for an operating system's installer; it installs only the lab's base image")
            network.plug(machine)
            seed = self._seed(seed_url(machine.lab, machine.name))
            if seed is None:
                return
            if read_faults(machine.lab, machine.name).install_never_ends:
                raise LabError("partitioning the disk, 47 % (injected fault: this step never ends)")
            with locked(f"lab-{machine.lab.name}"):
                if not self._unplugged.is_set():
                    install(machine, seed, self._say)
        except (HostwrightError, OSError) as error:
            self._say(str(error))
            self._say("the installation has stopped and waits for input at the console")
            self._unplugged.wait()

    def _seed(self, url: str) -> Seed | None:
        """Wait for the seed below ``url``; return ``None`` if the power was cut.

        Raises `LabError` at the timeout, or for an invalid seed.
        """
        self._say(f"waits for the seed below {url}")
        deadline, why = time.monotonic() + self._seed_timeout_s, ""
        while time.monotonic() < deadline:
            try:
                seed = read_seed(lambda name: fetch(self._machine, url + name))
            except NoAnswer as error:
                seed = None
                if str(error) != why:
                    why = str(error)
                    self._say(why)
            if seed is not None:
                self._say(f"has a seed: {seed.kind}, host {seed.hostname}, user {seed.user}, disk: {seed.storage}")
                return seed
            if self._unplugged.wait(_POLL_S):
                return None
        raise LabError(
            f"no seed below {url} within {self._seed_timeout_s:.0f} s; the installer waits for the seed at a prompt"
        )

    def _say(self, sentence: str) -> None:
        with self._machine.console.open("a") as console:
            console.write(f"installer: {sentence}\n")


def read_seed(get: Callable[[str], str | None]) -> Seed | None:
    """Return the seed from the files that ``get`` returns by name; ``None`` if a necessary file is missing.

    ``get`` returns ``None`` for a missing file. Raises `NoAnswer` if the server cannot be reached, and another
    `LabError` for an invalid seed.
    """
    user_data = get("user-data")
    if user_data is not None:
        # cloud-init's NoCloud requires both files
        return parse_autoinstall(user_data) if get("meta-data") is not None else None
    preseed = get("preseed.cfg")
    return None if preseed is None else parse_preseed(preseed)
