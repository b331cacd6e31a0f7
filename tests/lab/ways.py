"""The sections of docs/operators/migrate.md, whose commands run on a lab host."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from tests.lab.conftest import UNATTENDED, FrontDoor
from tests.places import PROJECT

PAGE = PROJECT / "docs/operators/migrate.md"
STEPS = ["stacks", "mirror", "plan", "provision", "verify", "rollback", "remove"]
OLD = "/opt/tensorflow-2.9/bin/python -c 'import tensorflow as tf; print(tf.__version__)' 2>/dev/null"


@dataclass(frozen=True)
class Way:
    """A section of the page, its stack, and the lab's stack in its place."""

    section: str
    published: str
    stack: str
    role: str  #: role of the framework; its package has the same name, except for PyTorch
    version: str

    @property
    def environment(self) -> str:
        """Path of the new environment."""
        return f"/opt/{self.role}-{self.version.rpartition('.')[0]}"

    @property
    def package(self) -> str:
        """Name of the Python package to import."""
        return {"pytorch": "torch"}.get(self.role, self.role)

    @property
    def new(self) -> str:
        """Command that prints the version in the new environment."""
        program = f"import {self.package}; print({self.package}.__version__)"
        return f"{self.environment}/bin/python -c '{program}' 2>/dev/null"

    def commands(self, host: str, former: str) -> Mapping[str, list[str]]:
        """Return the section's commands by their verbs, with a lab host and lab stacks.

        ``former`` is the lab's stack of TensorFlow 2.9. A section that refers to another section uses the commands
        there.
        """
        text = PAGE.read_text("utf-8").partition(f"## {self.section}\n")[2].partition("\n## ")[0]
        lines = [
            line.replace("gpu01", host)
            .replace(self.published, self.stack)
            .replace("--to tensorflow-2.9", f"--to {former}")
            for line in re.findall(r"^\$ hostwright (.+)$", text, re.MULTILINE)
        ]
        return {words[0]: words for words in map(shlex.split, lines)}


def typed(door: FrontDoor, words: list[str], *more: str, status: int) -> str:
    """Run a command of a section, which must end with this status; return its output."""
    done = door(*words, *more, **UNATTENDED.get(words[0], {"HOSTWRIGHT_YES": "1"}))
    assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout + done.stderr
