"""Whose workspaces are named before a host is rebooted, and what audits compare of them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from hostwright.plan.model import Answer, Facts
from hostwright.plan.roles.role import Wanted
from hostwright.standard.roles.container.running import CONTAINERS
from hostwright.standard.roles.workspaces.audit import CONTAINERS as SNIPPET
from hostwright.standard.roles.workspaces.audit import audit_values
from hostwright.standard.roles.workspaces.occupancy import DEFINITIONS, OCCUPANCY
from tests.unit.roles.workspaces.spaces import DECLARED, RECORDED, stub

ID = "9cd078cb21bc" + "0" * 52


def answers(rows: str, definitions: list[object]) -> Facts:
    text = "\n".join(json.dumps(each) if isinstance(each, dict) else str(each) for each in definitions)
    return Facts({CONTAINERS: Answer(0, f"spared false\nboots\n{rows}"), DEFINITIONS: Answer(0, text)})


def test_people_are_named_with_what_starts_their_workspace_again() -> None:
    rows = f"7661 {ID} /workspace-bob-lab unless-stopped\n7662 {ID} /workspace-a-run no\n7663 {ID} /other always\n"
    known = [{"name": "bob-lab", "user": "bob", "gpus": []}, {"name": "a-run", "user": "alice", "gpus": ["0"]}]
    facts = answers(rows, [*known, {"name": "gone", "user": "eve", "gpus": []}, "no json", {"name": 7}])
    assert OCCUPANCY.ended(facts) == (
        ("workspace bob-lab of bob", "Docker starts it again (restart policy unless-stopped)"),
        ("workspace a-run of alice", ""),
    )
    assert OCCUPANCY.users(facts) == ("workspace a-run of alice",)


def test_the_definitions_of_a_host_are_read_where_it_has_them(tmp_path: Path) -> None:
    script = DEFINITIONS.script.replace("/var/lib/hostwright/workspaces", str(tmp_path / "none"))
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout == ""


def test_audits_compare_what_is_declared_with_what_runs(tmp_path: Path) -> None:
    wanted = {value.name: value.want for value in audit_values(DECLARED, Wanted(stack=None))}  # type: ignore[arg-type]
    assert wanted["bob-lab"] == "running"
    assert "a-run" not in wanted  # it runs to its end
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
