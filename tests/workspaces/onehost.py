"""What tests of workspaces do with a lab of one host, whatever is on it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from lab.config import Lab, Machine
from lab.records import find_machine
from tests.lab.conftest import FrontDoor, on
from tests.places import PROJECT


@dataclass(frozen=True)
class OneHost:
    """The host, its inventory, and the command line on it."""

    HOST: ClassVar[str]  #: its name

    lab: Lab
    invoke: FrontDoor

    @property
    def machine(self) -> Machine:
        """The host."""
        return find_machine(self.lab, self.HOST)

    @property
    def file(self) -> Path:
        """Where workspaces and models are declared."""
        return self.lab.inventory.parent / "workspaces.yml"

    def on(self, script: str) -> str:
        """Run shell on the host as root; its output."""
        return on(self.machine, script)

    def say(self, *words: str) -> tuple[int, str]:
        """Any verb: its exit status, and all that it printed, with its line breaks made spaces."""
        done = self.invoke(*words, COLUMNS="400")
        return done.returncode, " ".join(f"{done.stdout} {done.stderr}".split())

    def begin(self, verb: str, *words: str) -> subprocess.Popen[str]:
        """A verb in a process group of its own, which Ctrl-C reaches though it was passed over for these tests."""
        door = str(Path(sys.executable).with_name("invoke"))
        return subprocess.Popen(
            ["env", "--default-signal=INT", door, verb, "--inventory", str(self.lab.inventory.parent), *words],
            cwd=PROJECT,
            env={**os.environ, "HOSTWRIGHT_STATE": str(self.lab.state / "controller"), "COLUMNS": "400"},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip

    def kill(self, run: subprocess.Popen[str]) -> None:
        """End a verb and all that it started at once."""
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
