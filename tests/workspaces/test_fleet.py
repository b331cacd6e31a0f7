"""Forty workspaces on ten hosts from one file: planned, made and listed at once, and what each of that costs a host."""

from __future__ import annotations

import os
import platform
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from hostwright.standard.roles.workspaces.declared.images import TENSORFLOW
from hostwright.standard.roles.workspaces.verbs.queries import COLUMNS
from tests.lab.ownlab import own_lab
from tests.lab.telling import tell
from tests.workspaces.forty import DECLARED, HOSTS, OTHER, USUAL, Container, Ten, opened

SCREEN = 24  #: lines of a terminal that nobody made larger
ONCE = dict.fromkeys(HOSTS, (1, 1))  #: a login and a command of each host
STATES = {"batch": "ended with status 0"}  #: of the others: running
PORTS = {(host, name) for host, spaces in DECLARED.items() for name in spaces if spaces[name]["kind"] != "batch"}


@pytest.fixture(scope="module")
def ten(pytestconfig: pytest.Config) -> Iterator[Ten]:
    """The hosts, without a workspace; at the end, what the verbs took."""
    with own_lab("ten") as lab:
        made = opened(lab)
        load = os.getloadavg()[0]
        yield made
        took = ", ".join(f"{verb} {seconds:.1f} s" for verb, seconds in made.seconds.items())
        machine = f"{os.cpu_count()} cores of {platform.machine()}, shared by the hosts; load {load:.1f} before"
        tell(pytestconfig, f"40 workspaces on 10 lab hosts: {took} ({machine}, {os.getloadavg()[0]:.1f} after)")


@dataclass(frozen=True)
class Planned:
    """What was seen of a plan before anything was there."""

    plans: dict[str, Any]
    costs: dict[str, tuple[int, int]]
    shown: dict[int, list[str]]  #: by the terminal's width
    containers: dict[str, dict[str, Container]]  #: afterwards


@pytest.fixture(scope="module")
def planned(ten: Ten) -> Planned:
    """A plan of all hosts with all of their roles."""
    before = ten.counts()
    document = ten.json("plan", "--hosts", "all", status=3)
    costs = ten.costs(before)
    plans = {plan["host"]: plan for plan in document["plans"]}
    assert document["errors"] == []
    shown = {columns: ten.in_terminal(columns, "plan", "--hosts", "all") for columns in (80, 120)}
    return Planned(plans, costs, shown, ten.containers())


@dataclass(frozen=True)
class Made:
    """The forty workspaces, made by one provision of all hosts."""

    ten: Ten
    hosts: list[dict[str, Any]]
    containers: dict[str, dict[str, Container]]


@pytest.fixture(scope="module")
def made(ten: Ten, planned: Planned) -> Made:
    """All hosts as the file says."""
    hosts = ten.json("provision", "--hosts", "all")["hosts"]
    ten.runs_ended()
    return Made(ten, hosts, ten.containers())


def test_a_plan_costs_each_host_one_login_and_one_command(planned: Planned) -> None:
    assert planned.costs == ONCE


def test_a_plan_names_all_forty_and_makes_none(planned: Planned) -> None:
    changes = {
        host: [change["what"] for role in plan["roles"] for change in role["changes"]]
        for host, plan in planned.plans.items()
    }
    assert changes == {host: [f"workspace {name}" for name in sorted(spaces)] for host, spaces in DECLARED.items()}
    assert planned.containers == {host: {} for host in HOSTS}


@pytest.mark.parametrize("columns", [80, 120])
def test_a_plan_shows_hosts_that_are_alike_once_and_fits_a_screen(planned: Planned, columns: int) -> None:
    lines = planned.shown[columns]
    assert [line for line in lines if line.startswith("gpu")] == [
        "gpu[01-09] (9 hosts)  4 changes to lab",
        "gpu10  4 changes to lab",
    ]
    text = " ".join(" ".join(lines).split())
    assert [text.count(f" workspace {name}: ") for name in USUAL] == [1, 1, 2, 1]  # bob-lab is gpu10's, too
    assert [text.count(f" workspace {name}: ") for name in OTHER] == [1, 1, 2, 1]
    # a command that is copied is in one piece, however long it is
    assert max(len(line) for line in lines if not line.startswith("next: ")) <= columns
    assert len(lines) < SCREEN


def test_one_provision_brings_all_forty_up(made: Made) -> None:
    assert [(host["host"], host["result"]) for host in made.hosts] == [(host, "changed") for host in HOSTS]
    assert {host: set(spaces) for host, spaces in made.containers.items()} == {
        host: set(spaces) for host, spaces in DECLARED.items()
    }
    rows = made.ten.json("workspace.list")["workspaces"]
    assert [(row["host"], row["name"], row["user"], row["kind"], row["state"]) for row in rows] == [
        (host, name, entry["user"], entry["kind"], STATES.get(entry["kind"], "running"))
        for host, spaces in DECLARED.items()
        for name, entry in sorted(spaces.items())
    ]
    assert len(rows) == 40


def test_each_host_gives_a_port_and_a_gpu_once(made: Made) -> None:
    listening = made.ten.on_all("ss -Hltn | awk '{ print $4 }'")
    cards = made.ten.on_all("nvidia-smi -L")
    seen = made.ten.on_all("cat /srv/workspaces/*/*-run/batch.log")
    for host, spaces in made.containers.items():
        ports = [container.port for container in spaces.values() if container.port]
        assert len(ports) == len(set(ports)) == 3
        assert {f"127.0.0.1:{port}" for port in ports} <= set(listening[host].split())
        uuids = [gpu for container in spaces.values() for gpu in container.gpus]
        assert sorted(uuids) == sorted(re.findall(r"UUID: (GPU-[0-9a-f-]+)", cards[host]))
        (run,) = (name for name in spaces if name.endswith("-run"))
        assert re.findall(r"UUID: (GPU-[0-9a-f-]+)", seen[host]) == list(spaces[run].gpus)
    assert len({gpu for spaces in made.containers.values() for each in spaces.values() for gpu in each.gpus}) == 30


def test_a_list_costs_each_host_one_login_and_one_command(made: Made) -> None:
    before = made.ten.counts()
    made.ten.done("workspace.list")
    assert made.ten.costs(before) == ONCE


@pytest.mark.parametrize("columns", [80, 120])
def test_a_list_tells_all_forty_in_one_table(made: Made, columns: int) -> None:
    head, *lines = made.ten.in_terminal(columns, "workspace.list")
    rows = [re.split(" {2,}", line) for line in lines[:40]]
    assert head.split() == list(COLUMNS)
    assert [tuple(row[:4]) for row in rows] == [
        (host, name, entry["user"], entry["kind"])
        for host, spaces in DECLARED.items()
        for name, entry in sorted(spaces.items())
    ]
    assert max(map(len, [head, *lines])) <= columns
    assert {(row[0], row[1]) for row in rows if row[5] != "-"} == PORTS
    assert Counter(row[6] for row in rows) == {"running": 30, "ended with status 0": 10}
    assert {row[7] for row in rows} == {TENSORFLOW if columns == 120 else "[1]"}
    rest = [line for line in lines[40:] if line]
    total = "40 workspaces on 10 hosts: 30 running, 10 ended with status 0"
    assert rest == ([total] if columns == 120 else [f"[1] {TENSORFLOW}", total])


def test_a_second_provision_changes_nothing(made: Made) -> None:
    again = made.ten.json("provision", "--hosts", "all")["hosts"]
    assert [(host["changed"], host["roles"]) for host in again] == [(False, [])] * len(HOSTS)
    assert made.ten.containers() == made.containers
    plans = made.ten.json("plan", "--hosts", "all")["plans"]
    assert [plan["roles"] for plan in plans] == [[]] * len(HOSTS)


def test_somebody_who_left_is_taken_off_every_host_and_nobody_else(made: Made) -> None:
    made.ten.declare(DECLARED, bob=True)
    shown = made.ten.in_terminal(80, "plan", "--hosts", "all")
    assert [line for line in shown if line.startswith("gpu")] == [
        "gpu[01-09] (9 hosts)  2 changes to lab",  # cut off, then removed
        "gpu10  2 changes to lab",
    ]
    made.ten.json("provision", "--hosts", "all")
    theirs = {
        host: {name: container for name, container in spaces.items() if DECLARED[host][name]["user"] != "bob"}
        for host, spaces in made.containers.items()
    }
    assert made.ten.containers() == theirs
    assert sum(map(len, theirs.values())) == 29
    assert len(made.ten.json("workspace.list")["workspaces"]) == 29
    files = made.ten.on_all("ls -d /srv/workspaces/bob/bob-lab")  # people's files stay
    assert set(files.values()) == {"/srv/workspaces/bob/bob-lab\n"}
