"""Adoption of a host that was set up by hand: the audit's report on it, and the stack that adopt writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import fleet as lab_fleet
from lab.config import Lab, Machine
from lab.records import Snapshot, find_machine
from tests.lab.conftest import SMALL, FrontDoor, on

HOST, STACK = "byhand01", "as-found"
#: Deletes Hostwright's records, releases and downgrades the toolkit, and adds a user's environment.
BY_HAND = """\
rm -rf /var/lib/hostwright
toolkit="libnvidia-container1 libnvidia-container-tools nvidia-container-toolkit-base nvidia-container-toolkit"
apt-mark unhold $toolkit >/dev/null
apt-get install -y -qq --allow-downgrades $(for one in $toolkit; do echo "$one=1.17.8-1"; done) >/dev/null
place=/srv/research/lib/python3.9/site-packages/tensorflow-2.8.4.dist-info
mkdir -p "$place"
"""


@pytest.fixture(scope="module")
def machine(lab: Lab, provisioned: FrontDoor, as_provisioned: Snapshot) -> Iterator[Machine]:
    """A host as if set up by hand."""
    lab_fleet.up(lab, [HOST], options=SMALL, snapshot=as_provisioned)
    machine = find_machine(lab, HOST)
    on(machine, BY_HAND)
    yield machine
    lab_fleet.remove(lab, [HOST])


@pytest.fixture(scope="module")
def adopted(lab: Lab, provisioned: FrontDoor, machine: Machine) -> dict[str, Any]:
    """The output of adopt for that host."""
    before = on(machine, "ls -A /var/lib/hostwright 2>/dev/null | wc -l")
    (stack,) = provisioned.json("adopt", "--hosts", HOST, "--name", STACK, status=0)["stacks"]
    assert on(machine, "ls -A /var/lib/hostwright 2>/dev/null | wc -l") == before
    return dict(stack)


def test_audit_shows_what_there_is_instead_of_never_provisioned(provisioned: FrontDoor, machine: Machine) -> None:
    text = provisioned("audit", "--hosts", HOST).stdout
    assert f"{HOST}  set up by hand" in text
    for part in (
        "470.182.03, source runfile, module proprietary",
        "11.2.2, in /usr/local/cuda-11.2",
        "8.1.0, in /usr/local/cuda-11.2/targets/x86_64-linux/lib",
        "nvidia-container-toolkit 1.17.8-1",
        "tensorflow 2.8.4, Python 3.9, in /srv/research",
    ):
        assert part in " ".join(text.split()), part


def test_the_stack_that_is_written_is_the_nearest_with_what_differs(adopted: dict[str, Any]) -> None:
    written = yaml.safe_load(Path(adopted["file"]).read_text("utf-8"))
    assert (adopted["extends"], written["extends"]) == ("lab", "lab")
    # apt installed the older package's config.toml, whose mode differs from the stack's
    assert written["container"] == {"toolkit": {"version": "1.17.8-1", "mode": "auto"}}
    assert set(written) == {"extends", "description", "roles", "container"}
    assert "tensorflow" not in written["roles"]
    assert "2.8.4 in /srv/research is left unchanged" in adopted["left_out"]["tensorflow"]
    assert adopted["misfits"] == []


def test_a_plan_with_it_changes_no_software(provisioned: FrontDoor, adopted: dict[str, Any]) -> None:
    """The plan has only Hostwright's own records and holds, and the restart of Docker and CDI leftovers."""
    (plan,) = provisioned.json("plan", "--hosts", HOST, "--var", f"stack={STACK}", status=3)["plans"]
    due = {change["what"]: (change["have"], change["want"]) for role in plan["roles"] for change in role["changes"]}
    assert due.pop("NVIDIA driver") == ("files not recorded", "recorded")
    assert due.pop("files of cudnn 8.1.0.77") == ("no record of its files", "8.1.0.77")
    (packages,) = (what for what in due if what.startswith("packages "))
    assert due.pop(packages)[0].endswith("not held")
    # Docker started before the older toolkit was installed, and the newer toolkit had units
    assert set(due) <= {"restart of docker.service", "files of nvidia-cdi-refresh"}


def test_provisioned_with_it_nothing_is_due_and_it_is_adopted_no_more(
    provisioned: FrontDoor, machine: Machine, adopted: dict[str, Any]
) -> None:
    chosen = ("--hosts", HOST, "--var", f"stack={STACK}")
    provisioned.json("provision", *chosen, status=0)
    provisioned.json("plan", *chosen, status=0)
    assert on(machine, "dpkg-query -W -f '${Version}' nvidia-container-toolkit") == "1.17.8-1"
    assert on(machine, "ls -d /srv/research/lib").strip() == "/srv/research/lib"
    again = provisioned.json("adopt", "--hosts", HOST, status=0)
    assert (again["stacks"], [one["stack"] for one in again["provisioned"]]) == ([], [STACK])
