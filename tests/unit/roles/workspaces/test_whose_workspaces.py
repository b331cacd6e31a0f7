"""Workspaces named before a reboot, and their audit values."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from hostwright.plan.desired import Desired
from hostwright.plan.host.occupancy import standard_occupancies
from hostwright.plan.model import Answer, Facts
from hostwright.plan.planning import at_work
from hostwright.plan.roles.role import RoleContext
from hostwright.standard.roles.container.running import CHILDREN, CONTAINERS, ended_by_reboot
from hostwright.standard.roles.driver.states.gpu_use import GPU_CONTAINERS, HOLDERS
from hostwright.standard.roles.workspaces.audit import CONTAINERS as SNIPPET
from hostwright.standard.roles.workspaces.audit import audit_values
from hostwright.standard.roles.workspaces.occupancy import DEFINITIONS, OCCUPANCY
from tests.unit.roles.workspaces.spaces import DECLARED, RECORDED, STACK
from tests.unit.support.stacks import load_stack
from tests.unit.support.stubs import stub

KNOWN: list[dict[str, object]] = [
    {"name": "bob-lab", "user": "bob", "kind": "jupyter", "gpus": []},
    {"name": "a-run", "user": "alice", "kind": "batch", "gpus": ["0"]},
]
ID = "9cd078cb21bc" + "0" * 52


def answers(rows: str, definitions: list[object], children: str = "", cards: str = "") -> Facts:
    text = "\n".join(json.dumps(each) if isinstance(each, dict) else str(each) for each in definitions)
    given = {CONTAINERS: f"spared false\nboots\n{rows}", DEFINITIONS: text, CHILDREN: children}
    return Facts({probe: Answer(0, answer) for probe, answer in {**given, HOLDERS: "", GPU_CONTAINERS: cards}.items()})


def test_people_are_named_with_what_starts_their_workspace_again() -> None:
    rows = f"7661 {ID} /workspace-bob-lab unless-stopped\n7662 {ID} /workspace-a-run no\n7663 {ID} /other always\n"
    facts = answers(rows, [*KNOWN, {**KNOWN[0], "name": "gone", "user": "eve"}, "no json", {"name": 7}])
    assert OCCUPANCY.ended(facts) == (
        ("workspace bob-lab of bob", "Docker starts it again (restart policy unless-stopped)"),
        ("workspace a-run of alice (a batch run)", ""),
    )
    assert OCCUPANCY.users(facts) == ("workspace a-run of alice (a batch run)",)


def test_what_runs_in_a_workspace_is_brought_back_by_nobody() -> None:
    """A reboot without confirmation ended a kernel with an hour's work: only its container was restarted."""
    rows = f"7661 {ID} /workspace-bob-lab unless-stopped\n7662 {ID[:-1]}1 /workspace-board unless-stopped\n"
    known = [KNOWN[0], {"name": "board", "user": "bob", "kind": "tensorboard", "gpus": []}]
    facts = answers(rows, known, children="children 7661 2\nchildren 7662 1\nchildren x y\nnoise\n")
    assert standard_occupancies().ended(facts) == ("workspace bob-lab of bob (2 processes)",)
    assert standard_occupancies().at_work(facts, boots=True).everyone == ("workspace bob-lab of bob (2 processes)",)


def test_people_are_named_and_not_containers() -> None:
    """Docker's restart, a replaced driver and a reboot each named a container by its ID, or a workspace twice."""
    box, run, other = "0ddb1a5e5bad" + "0" * 52, "0ddb1a5e5bae" + "0" * 52, "0ddb1a5e5baf" + "0" * 52
    rows = f"7 {box} /workspace-bob-lab unless-stopped\n8 {run} /workspace-a-run no\n9 {other} /registry always\n"
    facts = answers(
        rows, KNOWN, cards=f"80 {run[:12]} 80,81 workspace-a-run python3\n90 {other[:12]} 90 registry registry\n"
    )
    known = standard_occupancies()
    assert known.users(facts) == ("workspace a-run of alice (a batch run)", f"container {other[:12]} (pid 90) registry")
    named = known.named((name for name, _ in ended_by_reboot(facts)), facts)
    assert named == (
        "workspace bob-lab of bob",
        "workspace a-run of alice (a batch run)",
        f"container {other[:12]} (pid 9) registry",
    )
    assert known.ended(facts) == ("workspace a-run of alice (a batch run)",)
    assert len(known.returning(facts)) == 2
    desired = Desired("gpu01", load_stack("tensorflow-2.9"), ())
    hit = at_work(desired, (), facts, reboots=True)
    assert hit.everyone == ("workspace a-run of alice (a batch run)", f"container {other[:12]} (pid 90) registry")


def test_the_definitions_of_a_host_are_read_where_it_has_them(tmp_path: Path) -> None:
    script = DEFINITIONS.script.replace("/var/lib/hostwright/workspaces", str(tmp_path / "none"))
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout == ""


def test_audits_compare_what_is_declared_with_what_runs(tmp_path: Path) -> None:
    values = audit_values(DECLARED, RoleContext(STACK))
    wanted = {value.name: value.want for value in values if value.where.line.startswith("workspaces ")}
    assert wanted["bob-lab"] == "running"
    assert "a-run" not in wanted  # the run ends by itself
    recorded = [json.loads(line.partition(" ")[2]) for line in RECORDED.splitlines() if line.startswith("container ")]
    assert {row["workspace"]: row["definition"] for row in recorded} == {
        name.removesuffix(" definition"): want for name, want in wanted.items() if name.endswith(" definition")
    }
    rows = "\n".join(f"{row['workspace']} {row['state']} {row['definition']} {row['image']}" for row in recorded)
    environment = stub(tmp_path, docker=f'case $1 in ps) echo id ;; *) cat <<"E"\n{rows}\nE\n;; esac')
    prelude = f'line_of() {{ line={os.getpid()}; }}\nbounded() {{ "$@"; }}\nsay() {{ printf "%s: %s\\n" "$1" "$2"; }}\n'
    command = ["/bin/sh", "-euc", prelude + SNIPPET.text]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    lines = dict(line.split(": ") for line in done.stdout.splitlines())
    assert {name: lines[name] for name in wanted if wanted[name]} == {n: w for n, w in wanted.items() if w}
