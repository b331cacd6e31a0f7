"""Test support: workspaces of the recorded lab host, and its answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hostwright.plan.model import Answer, Facts, Planned, Resource
from hostwright.plan.roles.role import RoleContext
from hostwright.plan.testing import facts_for
from hostwright.standard.roles.workspaces import Workspaces, workspaces
from hostwright.standard.roles.workspaces.declared.entries import WorkspaceEntry, WorkspaceUser
from hostwright.standard.roles.workspaces.declared.workspace import Workspace
from hostwright.standard.roles.workspaces.states.access import AccessWithdrawn
from hostwright.standard.roles.workspaces.states.images import ImageBuilt
from hostwright.standard.roles.workspaces.states.running import WorkspaceRuns, digest
from hostwright.standard.roles.workspaces.states.undeclared import Undeclared
from tests.unit.support.stacks import load_stack

STACK = load_stack("tensorflow-2.9")  #: stack of the default image
#: from a lab host with Docker 20.10.5, two Jupyters, an ssh box, a TensorBoard and two ended batch runs
LAB_HOST = (Path(__file__).parents[3] / "fixtures" / "workspaces" / "facts.txt").read_text()
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID0Fl7l3eLK+d4Ez/PEEPGzn7MBQubH104CYzFf9H3gs alice@desk"
CARD, OTHER = "GPU-9770bbdd-ac00-55f4-be28-d12740a699a4", "GPU-11111111-2222-3333-4444-555555555555"
IMAGE = "lab/jupyter:1"
ENTRIES = {
    "alice-lab": WorkspaceEntry("alice", "jupyter", gpus=("0",), image=IMAGE, share=True),
    "alice-box": WorkspaceEntry("alice", "ssh", image="lab/jupyter:2"),
    "bob-lab": WorkspaceEntry("bob", "jupyter", image=IMAGE, memory="512m"),
    "bob-board": WorkspaceEntry("bob", "tensorboard", image=IMAGE),
    "a-run": WorkspaceEntry(
        "alice", "batch", gpus=("0",), image=IMAGE, share=True, command=("sh", "-c", "date; sleep 5; date; id; exit 3")
    ),
    "b-run": WorkspaceEntry("bob", "batch", gpus=("0",), image=IMAGE, share=True, script="echo hello; sleep 1; date\n"),
}
DECLARED = Workspaces(users={"alice": WorkspaceUser(2001, keys=(KEY,)), "bob": WorkspaceUser(2002)}, containers=ENTRIES)

#: texts that YAML parsers read as numbers, booleans, times and dates unless quoted
AMBIGUOUS = (
    "0644", "1.10", "1e3", "1_000", "0x10", "1:30", "12:30:45", "2026-11-23", "08", "0o17", "+1", ".5", ".inf", "y",
)  # fmt: skip


def variables(**changed: WorkspaceEntry | None) -> Workspaces:
    """Return the recorded host's variables, with some workspaces changed, added (``bob_lab`` is bob-lab) or removed."""
    entries: dict[str, WorkspaceEntry | None] = {
        **ENTRIES, **{name.replace("_", "-"): entry for name, entry in changed.items()}
    }  # fmt: skip
    return replace(DECLARED, containers={name: entry for name, entry in entries.items() if entry is not None})


def states(v: Workspaces = DECLARED, *, force: bool = False) -> list[Resource]:
    """Return the states that use Docker."""
    ctx = RoleContext(STACK, force=force)
    asking = AccessWithdrawn | ImageBuilt | Undeclared | WorkspaceRuns
    return [state for state in workspaces.resources(v, ctx) if isinstance(state, asking)]


def _with_todays_image(look: str) -> str:
    """Return the recorded answer, whose ssh box image was built from the Dockerfile of that day."""
    box = next(state for state in states() if isinstance(state, WorkspaceRuns) and state.name == "alice-box")
    line = next(line for line in look.splitlines() if '"/workspace-alice-box"' in line)
    was = json.loads(line.partition(" ")[2])
    return look.replace(was["reference"], box.built).replace(was["definition"], digest(box.definition))


def report(*uuids: str) -> str:
    """Return nvidia-smi's report for a host with these GPUs."""
    cards = "".join(f'<gpu id="0000000{number}:01:00.0"><uuid>{uuid}</uuid></gpu>' for number, uuid in enumerate(uuids))
    return f"<nvidia_smi_log><driver_version>470.182.03</driver_version>{cards}</nvidia_smi_log>"


RECORDED = _with_todays_image(LAB_HOST)


def answers(look: str = RECORDED, cards: tuple[str, ...] = (CARD, OTHER), **accounts: str) -> dict[str, Any]:
    """Return the host's answers; ``accounts`` has getent's lines by name."""
    known = {f"getent passwd -- {name}": line for name, line in accounts.items()}
    return {"docker ps -aq": look, "nvidia-smi -q -x": report(*cards), "getent passwd": Answer(2, ""), **known}


def facts(many: list[Resource], replies: Mapping[str, Any]) -> Facts:
    return facts_for(many, replies)


def planned(
    v: Workspaces = DECLARED, replies: Mapping[str, Any] | None = None, *, force: bool = False
) -> dict[str, Planned]:
    """Return the planned changes by their name in the plan."""
    many = states(v, force=force)
    known = facts_for(many, answers() if replies is None else replies)
    return {plan.what: plan for state in many if (plan := state.plan(known)) is not None}


def recorded(**changed: Mapping[str, Any]) -> str:
    """Return the recorded answer with other values of some containers; an empty mapping removes one."""
    lines = []
    for line in RECORDED.splitlines():
        kind, _, rest = line.partition(" ")
        row = json.loads(rest) if kind == "container" else {}
        change = changed.get(str(row.get("workspace")).replace("-", "_"))
        if change is None:
            lines.append(line)
        elif change:
            lines.append(f"container {json.dumps({**row, **change}, separators=(',', ':'))}")
    return "\n".join(lines) + "\n"


def space(entry: WorkspaceEntry) -> Workspace:
    """Return a further workspace of this kind."""
    many = [state for state in states(variables(x=entry)) if isinstance(state, WorkspaceRuns)]
    return next(state.workspace for state in many if state.name == "x")
