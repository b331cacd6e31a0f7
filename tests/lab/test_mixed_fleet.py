"""A fleet between two stacks: twelve hosts on TensorFlow 2.9, twelve on a current stack, until all are on the latter.

The inventory sets the stack of each rack. Each rack has a drift and an odd value, and a user's container makes one host
refuse its change. Takes 11 minutes on two cores with a load of 8 per core.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
import yaml

from lab import fleet as lab_fleet
from lab import snapshots
from lab.config import Lab
from lab.hardware import T4, Hardware
from lab.records import find_machine, read_snapshots
from tests.lab.audit.bench import AT_ONCE, SETTLE
from tests.lab.conftest import SMALL, FrontDoor, on
from tests.lab.ownlab import own_lab
from tests.lab.test_migrate import PINS, TRAINING, write
from tests.lab.test_reattach import JOBS, read_until, start

pytestmark = pytest.mark.long
WAY = next(iter(PINS))
RACKS = {
    "rack1": tuple(f"mix{number:02}" for number in range(1, 13)),
    "rack2": tuple(f"mix{number:02}" for number in range(13, 25)),
}
STACKS = {"rack1": "lab", "rack2": WAY.stack}
RACK1 = RACKS["rack1"]
CANARY, BUSY, *_ = RACK1
DRIFTED, DRIFTED_TODAY = "mix03", "mix14"
ODD_CARD, ODD_DOCKER = "mix05", "mix17"
DRIFTS = {
    (DRIFTED, "environment", "file /etc/profile.d/cuda.sh", "drift"),
    (DRIFTED_TODAY, "base", "file /etc/apt/apt.conf.d/52hostwright", "drift"),
}
ODD = {("gpu", "vbios"): [ODD_CARD], ("container", "docker"): [ODD_DOCKER], ("container", "docker.io"): [ODD_DOCKER]}
OLDER_DOCKER = "sed -i '/^Package: docker.io$/,/^$/s/^Version: .*/Version: 20.10.5-planted/' /var/lib/dpkg/status"


def choose(lab: Lab, stacks: dict[str, str]) -> None:
    """Write the stack of each rack into the inventory."""
    folder = lab.inventory.parent
    (folder / "group_vars").mkdir(exist_ok=True)
    racks = {rack: {"hosts": dict.fromkeys(hosts)} for rack, hosts in RACKS.items()}
    (folder / "racks.yml").write_text(yaml.safe_dump(racks))
    for rack, stack in stacks.items():
        (folder / f"group_vars/{rack}.yml").write_text(yaml.safe_dump({"stack": stack}))


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A separate lab with a bare host for each rack."""
    with own_lab("mixed") as opened:
        lab_fleet.supply(opened, SMALL)
        write(WAY, opened.stack.parent)
        lab_fleet.up(opened, [hosts[0] for hosts in RACKS.values()], options=SMALL)
        choose(opened, STACKS)
        yield opened


@pytest.fixture(scope="module")
def door(lab: Lab) -> FrontDoor:
    """``invoke`` on that lab: one host of each rack is provisioned, the others are its clones."""
    door = FrontDoor(lab)
    for stack in STACKS.values():
        done = door("mirror", "--stack", stack)
        assert done.returncode == 0, done.stderr
    door.json("provision", "--hosts", ",".join(hosts[0] for hosts in RACKS.values()), status=0)
    other = replace(SMALL, hardware=Hardware((replace(T4, vbios="90.04.38.00.03"),)))
    for rack, hosts in RACKS.items():
        provisioned = read_snapshots(lab).get(rack) or snapshots.freeze(find_machine(lab, hosts[0]), rack)
        lab_fleet.up(lab, {ODD_CARD} & {*hosts}, options=other, snapshot=provisioned)
        lab_fleet.up(lab, [host for host in hosts if host != ODD_CARD], snapshot=provisioned)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for hosts in RACKS.values():
            list(pool.map(lambda host: on(find_machine(lab, host), SETTLE), hosts))
    return door


def audit(door: FrontDoor, status: int) -> Any:
    """Return the audit document of both racks."""
    return door.json("audit", "--hosts", "rack1,rack2", status=status)


def rows(door: FrontDoor, status: int) -> list[list[str]]:
    """Return the rows of the printed audit, split into words."""
    done = door("audit", "--hosts", "rack1,rack2", "--offline")
    assert done.returncode == status, done.stderr
    return [line.split() for line in done.stdout.partition("\n\n")[0].splitlines()]


def statuses(document: Any) -> Counter[tuple[str, str]]:
    """Return (stack, status) → number of hosts."""
    return Counter((host["stack"], host["status"]) for host in document["hosts"])


def odd(document: Any) -> dict[tuple[str, str], list[str]]:
    """Return (layer, value) → outlier hosts."""
    return {(one["layer"], one["name"]): one["outliers"] for one in document["spreads"] if one["outliers"]}


def results(door: FrontDoor) -> dict[str, str]:
    """Return the result of each host in the last run."""
    shown = door.bare("runs.show", "--json")
    return {host["host"]: host["result"] for host in yaml.safe_load(shown.stdout)["hosts"]}


def left(ended: dict[str, str]) -> list[str]:
    """Return the hosts that a run did not finish, in order."""
    return [host for host, result in ended.items() if result not in ("changed", "as desired")]


def jobs(lab: Lab, hosts: Iterable[str]) -> dict[str, str]:
    """Return the jobs that ever ran on hosts."""
    return {host: on(find_machine(lab, host), f"ls {JOBS}") for host in hosts}


def test_an_audit_shows_the_stack_of_each_half_and_what_is_odd_in_it(door: FrontDoor, lab: Lab) -> None:
    on(find_machine(lab, DRIFTED), "rm -f /etc/profile.d/cuda.sh")
    on(find_machine(lab, DRIFTED_TODAY), "rm -f /etc/apt/apt.conf.d/52hostwright")
    on(find_machine(lab, ODD_DOCKER), OLDER_DOCKER)
    document = audit(door, status=3)
    assert statuses(document) == {(stack, "desired"): 11 for stack in STACKS.values()} | {
        (stack, "drift"): 1 for stack in STACKS.values()
    }
    assert {
        (host["host"], one["layer"], one["what"], one["why"])
        for host in document["hosts"]
        for one in host["deviations"]
    } == DRIFTS
    assert odd(document) == ODD
    head, *shown = rows(door, status=3)
    assert head[:3] == ["hosts", "stack", "base"]
    assert [" ".join(row).partition(" ✓")[0].partition(" ~")[0] for row in shown] == [
        f"{DRIFTED} lab",
        f"{DRIFTED_TODAY} {WAY.stack}",
        "mix[01-02,04-12] (11 hosts) lab",
        f"mix[13,15-24] (11 hosts) {WAY.stack}",
    ]


def test_a_half_for_which_the_inventory_names_another_stack_is_behind_it(door: FrontDoor, lab: Lab) -> None:
    """Drift in the other half is found as a set, and only that is repaired."""
    choose(lab, {"rack1": WAY.stack})
    document = audit(door, status=3)
    assert statuses(document) == {(WAY.stack, "intent"): 12, (WAY.stack, "desired"): 11, (WAY.stack, "drift"): 1}
    done = door.json("provision", "--hosts", "@drifted", status=0)
    assert [(host["host"], host["result"]) for host in done["hosts"]] == [(DRIFTED_TODAY, "changed")]


def test_a_failure_within_the_budget_stops_nothing_and_ctrl_c_leaves_the_rest(door: FrontDoor, lab: Lab) -> None:
    on(find_machine(lab, BUSY), TRAINING)
    words = ("provision", "--hosts", "rack1", "--canary", "1", "--batch", "3", "--max-fail", "1", "--yes")
    run = start(door, lab.state / "controller", words=words)
    read_until(run, f"{CANARY}  as desired")
    assert "training" in read_until(run, f"{BUSY}  failed")
    read_until(run, "  as desired")
    run.send_signal(signal.SIGINT)
    out, _ = run.communicate()
    assert run.returncode == 1
    assert "stopped by the operator. To continue with the remaining hosts: " in out
    ended = results(door)
    assert (ended[CANARY], ended[BUSY]) == ("changed", "failed")
    assert Counter(ended.values())["changed"] >= 2
    assert Counter(ended.values())["failed"] == 1
    untouched = [host for host, result in ended.items() if result == "untouched"]
    assert untouched == [*RACK1[-len(untouched) :]]
    assert len(untouched) >= 3


def test_a_spent_budget_stops_the_rollout_and_says_so(door: FrontDoor) -> None:
    """The host with the user's container is the first of the remaining hosts."""
    behind = left(results(door))
    words = ("--resume", "--canary", "0", "--batch", "1", "--max-fail", "0", "--yes")
    stopped = door.json("provision", *words, status=1)
    assert stopped["stopped_because"] == "too many failures: 1 host failed, --max-fail allows 0"
    assert [error["host"] for error in stopped["errors"]] == [BUSY]
    assert (stopped["hosts"], [BUSY, *stopped["untouched"]]) == ([], behind)


def test_resume_finishes_exactly_the_rest(door: FrontDoor, lab: Lab) -> None:
    behind = left(results(door))
    before = jobs(lab, {*RACK1} - {*behind})
    on(find_machine(lab, BUSY), "docker rm -f training")
    done = door.json("provision", "--resume", "--batch", "3", "--yes", status=0)
    assert {host["host"] for host in done["hosts"]} == {*behind}
    assert jobs(lab, before) == before


def test_once_the_former_layers_are_removed_the_fleet_is_one_group(door: FrontDoor) -> None:
    """Before that, libraries of the former CUDA beside the new environment's are a warning."""
    assert groups(door) == ["mix[01-12] (12 hosts)", "mix[13-24] (12 hosts)"]
    door.json("remove", "--hosts", "rack1", "--roles", "tensorflow,environment,cudnn,cuda", status=0)
    assert groups(door) == ["mix[01-24] (24 hosts)"]


def groups(door: FrontDoor) -> list[str]:
    """Return the rows of an audit with all hosts as desired on one stack; odd values must be named."""
    document = audit(door, status=0)
    assert statuses(document) == {(WAY.stack, "desired"): 24}
    assert odd(document) == ODD
    head, *shown = rows(door, status=0)
    assert head[:2] == ["hosts", "base"]
    return [" ".join(row[:3]) for row in shown]
