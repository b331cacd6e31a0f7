"""The ways of docs/operators/migrate.md: a section's commands, typed on a host of a lab."""

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
    """A section of the page, the stack that it names, and one in its place that the lab can have."""

    section: str
    published: str
    stack: str
    role: str  #: of the framework; its package has the same name, but for PyTorch's
    version: str

    @property
    def environment(self) -> str:
        """Where the new one is."""
        return f"/opt/{self.role}-{self.version.rpartition('.')[0]}"

    @property
    def package(self) -> str:
        """The name under which Python imports it."""
        return {"pytorch": "torch"}.get(self.role, self.role)

    @property
    def new(self) -> str:
        """The command that says which version the new environment has."""
        program = f"import {self.package}; print({self.package}.__version__)"
        return f"{self.environment}/bin/python -c '{program}' 2>/dev/null"

    def commands(self, host: str, former: str) -> Mapping[str, list[str]]:
        """The section's commands by their verbs, with a host and stacks of the lab; ``former`` is its TensorFlow 2.9's.

        A section that refers to another has that one's.
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
    """Run a command of a section, which must end with this status; what it prints."""
    done = door(*words, *more, **UNATTENDED.get(words[0], {"HOSTWRIGHT_YES": "1"}))
    assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout + done.stderr
