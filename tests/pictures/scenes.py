"""Which pictures there are: every verb, on hosts in every state that makes sense for it."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass

from tests.pictures.hosts import GROUPS
from tests.places import PROJECT

VERBS = tuple(json.loads((PROJECT / "tests/unit/cli/verbs.json").read_text("utf-8")))
#: verbs that find, or make, another state of hosts: each on hosts of every group
ON_ALL = (
    "plan", "plan --summary", "provision", "remove", "rollback", "rebuild", "rebuild --check", "verify",
    "verify --prove quick", "prove --quick", "audit", "doctor",
)  # fmt: skip
#: verbs to which a bare host is one like any other
ON_SOME = ("power status", "power off", "lock --list", "lock --reason RMA", "unlock", "audit.history", "runs.follow")
SOME = tuple(group for group in GROUPS if group not in {"bare", "new"})
#: verbs to which the state of a host does not matter; some with real logins, as nobody
ON_ANY = (
    "hosts", "vars --roles cuda",
    "run -- sh -c 'echo CUDA 11.2'", "run -- sh -c 'echo no room left on device >&2; exit 9'", "trust",
)  # fmt: skip
ANY = ("green", "silent", "long", "fleet")
DETAILS = ("verify --details", "audit --details", "prove --quick --details", "vars --why", "plan --roles cuda")
#: with what is on this machine; in this order, after the runs above
HERE = (
    "stacks", "check", "runs", "runs.show", "runs.show --steps", "rebuild --report", "audit.diff --since 1h",
    "audit --offline", "mirror", "mirror --stack tiny", "ssh gpu01 -- echo CUDA 11.2",
    "init new-site --stack tensorflow-2.9",
    "completion fish",
)  # fmt: skip
#: verbs of roles; the file that some of them write is as it was before each
PEOPLE = (
    "workspace.list @people", "workspace.list lab01", "workspace.list lab04", "serve.list @people", "serve.list lab02",
    "images.audit @people", "images.audit lab01 --no-scan",
    "workspace.url --name alice-lab", "workspace.url --name alice-lab --token", "workspace.url --name alice-box",
    "workspace.logs --name a-run", "workspace.exec --name alice-lab --command 'nvidia-smi -L'",
    *(f"workspace.export --name a-run --format {form}" for form in ("compose", "slurm", "kubernetes")),
    "workspace.up lab01 --user bob --kind tensorboard --logs /data/logs --image lab/jupyter:1",
    "workspace.up lab02 --user alice --kind jupyter --image lab/jupyter:1",
    "workspace.up lab01 --name bob-lab --memory 1g",
    "workspace.down lab01 --name bob-lab", "workspace.down lab01 --name bob-lba",
    "serve.up lab01 --model half-plus-two", "serve.up lab02 --model half-plus-two", "serve.up --model nowhere",
    "serve.switch lab01 --name mnist --version 2 --force", "serve.switch lab01 --name mnist --version 2",
    "serve.switch lab01 --name mnist --version 9", "serve.down lab01 --name mnist",
    "serve.down lab01 --name mnist --version 1",
    "images.push lab01 --archive tool.tar", "images.push lab01 --archive tool.tar --check", "images.push lab01",
    "images.rebuild lab01", "images.rebuild lab02 --check", "registry.trust lab01", "registry.trust lab02",
)  # fmt: skip
MISTAKES = (
    "provison", "plan --host gpu01", "plan --hosts gpu99", "provision", "audit --roles cuda,cudn",
    "verify --hosts @gren", "lock --hosts gpu01", "power of --hosts gpu01", "runs.show --run nobody",
    "workspace.up gpu01 --user alice", "ssh @green", "run --hosts gpu01", "plan --hosts gpu01 --var base",
)  # fmt: skip
HELP = ("--help", "--list", "--version", *(f"--help {verb}" for verb in (*VERBS, "init", "completion")))


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
    [Scene(words, group) for words in ON_ALL for group in GROUPS]
    + [Scene(words, group) for words in ON_SOME for group in SOME]
    + [Scene(words, group) for words in ON_ANY for group in ANY]
    + [Scene(words, "broken") for words in DETAILS]
    + [Scene(words) for words in (*HERE, *PEOPLE, *MISTAKES, *HELP)]
)
