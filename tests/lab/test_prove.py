"""``invoke prove`` over SSH: processors and memory are measured, what computes nothing fails, nothing stays behind.

The lab's libcuda is a stand-in that computes nothing: a proof of its card that passed would be a lie.
"""

from __future__ import annotations

from lab.config import Lab
from lab.records import find_machine
from tests.lab.conftest import FrontDoor, on

#: what a job would leave behind beside its own record and the file of the host's lock, which stays after every run:
#: files and directories of ours, and processes (not this shell)
LEFT = (
    "mkdir -p /run/hostwright; find /var/lib/hostwright /run/hostwright -path '*/hostwright/jobs' -prune"
    " -o ! -path /run/hostwright/run.lock -print | sort; "
    "pgrep -fa '[/]var/lib/hostwright/jobs' || :"
)
HOSTS = ("gpu01", "gpu02")


def test_each_host_is_measured_and_a_card_that_computes_nothing_fails(provisioned: FrontDoor, lab: Lab):
    assert provisioned("provision", "--hosts", "gpu01,gpu02").returncode == 0  # whatever the tests before this one did
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
