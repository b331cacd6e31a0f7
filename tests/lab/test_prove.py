"""``invoke prove`` over SSH: measures processors and memory, fails without a computing GPU, and leaves nothing.

The lab's libcuda is a stand-in that computes nothing, so a passed proof of its card would be wrong.
"""

from __future__ import annotations

from lab.config import Lab
from lab.records import find_machine
from tests.lab.conftest import FrontDoor, on

#: Lists leftovers of a job, except for its record and the host's lock file, which stay after every run: Hostwright's
#: files and directories, and processes (except for this shell).
LEFT = (
    "mkdir -p /run/hostwright; find /var/lib/hostwright /run/hostwright -path '*/hostwright/jobs' -prune"
    " -o ! -path /run/hostwright/run.lock -print | sort; "
    "pgrep -fa '[/]var/lib/hostwright/jobs' || :"
)
HOSTS = ("gpu01", "gpu02")


def test_each_host_is_measured_and_a_card_that_computes_nothing_fails(provisioned: FrontDoor, lab: Lab):
    assert provisioned("provision", "--hosts", "gpu01,gpu02").returncode == 0  # independent of earlier tests
    before = {name: on(find_machine(lab, name), LEFT) for name in HOSTS}
    words = ("prove", "--hosts", "gpu01,gpu02", "--proofs", "base.processors,base.memory,cuda.memory")
    told = provisioned.json(*words, status=3)
    assert [host["host"] for host in told["hosts"]] == list(HOSTS)
    for host in told["hosts"]:
        outcomes = {one["proof"]: one["outcome"] for one in host["results"]}
        assert outcomes == {"base.processors": "passed", "base.memory": "passed", "cuda.memory": "failed"}, host
        of = {one["proof"]: one for one in host["results"]}
        measured = {one["name"]: one["value"] for one in of["base.memory"]["measurements"]}
        assert measured["memory copy"] > 0
        assert measured["wrong values in memory"] == 0
        assert "CUDA sees none of 1 cards" in of["cuda.memory"]["sentence"]
        assert host["stand_ins"], "figures of a stand-in carry its label"
    assert {name: on(find_machine(lab, name), LEFT) for name in HOSTS} == before
    plan = provisioned("plan", "--hosts", "gpu01,gpu02")
    assert plan.returncode == 0, plan.stdout
