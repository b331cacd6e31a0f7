"""What tests of workspaces do with a lab of one host, whatever is on it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from lab.config import Lab, Machine
from lab.records import find_machine
from tests.lab.conftest import FrontDoor, on


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
