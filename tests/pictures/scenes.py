"""Which pictures there are: every verb, on hosts in every state that makes sense for it."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass

from tests.pictures.hosts import GROUPS
from tests.places import PROJECT

VERBS = tuple(json.loads((PROJECT / "tests/unit/cli/verbs.json").read_text("utf-8")))
#: verbs on hosts, each on hosts of every group
ON_HOSTS = (
    "plan", "plan --summary", "provision", "remove", "rollback", "rebuild", "rebuild --check", "verify",
    "verify --prove quick", "prove --quick", "audit", "doctor", "power status", "power off", "lock --list",
    "lock --reason RMA", "unlock", "hosts", "vars --roles cuda", "audit.history", "runs.follow",
)  # fmt: skip
#: real logins, as nobody
REAL = ("run -- sh -c 'echo CUDA 11.2'", "run -- sh -c 'echo no room left on device >&2; exit 9'", "trust")
#: with what is on this machine; in this order, after the runs above
HERE = (
    "stacks", "check", "runs", "runs.show", "runs.show --steps", "rebuild --report", "audit.diff --since 1h",
    "audit --offline", "mirror", "workspace.list", "workspace.export --name nobody", "serve.list",
)  # fmt: skip
MISTAKES = (
    "provison", "plan --host gpu01", "plan --hosts gpu99", "provision", "audit --roles cuda,cudn",
    "verify --hosts @gren", "lock --hosts gpu01", "power of --hosts gpu01", "runs.show --run nobody",
)  # fmt: skip
HELP = ("--help", "--list", "--version", *(f"--help {verb}" for verb in VERBS))


@dataclass(frozen=True)
class Scene:
    """One command, and for whom."""

    words: str
    group: str = ""

    @property
    def command(self) -> str:
        """As it is typed."""
        if not self.group:
            return self.words
        verb, dashes, rest = self.words.partition(" -- ")
        return f"{verb} --hosts @{self.group}{dashes}{rest}"

    @property
    def typed(self) -> list[str]:
        """The words of the command."""
        return shlex.split(self.command)

    @property
    def name(self) -> str:
        """Of its file."""
        return "".join(char if char.isalnum() else "-" for char in f"{self.words} {self.group}").strip("-")[:80]


SCENES = tuple(
    [Scene(words, group) for words in (*ON_HOSTS, *REAL) for group in GROUPS]
    + [Scene(words) for words in (*HERE, *MISTAKES, *HELP)]
)
