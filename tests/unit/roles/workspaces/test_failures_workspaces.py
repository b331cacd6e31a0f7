"""Failures in users' containers are found in Docker's and nvidia-smi's output, and classified by their messages."""

from __future__ import annotations

import json
import os
import string
import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.audit.failures import FailureRule
from hostwright.audit.judging.audited import audit_probes
from hostwright.audit.judging.context import Unread
from hostwright.audit.judging.judging import judge
from hostwright.fleet import Fleet, TargetHost
from hostwright.plan.model import Answer, Facts
from hostwright.standard.roles.workspaces.failures import CARDS_INSIDE, FAILURES
from hostwright.standard.roles.workspaces.states.facts import WORKSPACES_PROBE
from tests.unit.roles.workspaces.made_up import MADE_UP, MadeUp
from tests.unit.roles.workspaces.spaces import recorded
from tests.unit.support.auditcontexts import evidence
from tests.unit.support.known import KNOWN
from tests.unit.support.stubs import stub

SIGNED = [rule for rule in FAILURES if rule.sign]
CASES = json.loads((Path(__file__).parents[3] / "fixtures" / "workspaces" / "failures.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> TargetHost:
    folder = tmp_path_factory.mktemp("inventory")
    (folder / "hosts.yml").write_text("all: {hosts: {gpu01: {ansible_host: 192.0.2.1}}}")
    return Fleet.load(folder).targets("gpu01")[0]


@pytest.mark.parametrize("case", MADE_UP, ids=lambda case: case.name)
def test_exactly_what_is_wrong_is_found(case: MadeUp, target: TargetHost) -> None:
    host = case.target(target)
    silent = Facts(dict.fromkeys(audit_probes(host), Answer(1, "")))
    findings = judge(host, Facts({**silent, **case.change(silent)}), datetime(2026, 11, 23, tzinfo=UTC)).findings
    assert {finding.rule for finding in findings if finding.layer in case.roles} == case.rules
    assert all(finding.evidence and all(finding.evidence) for finding in findings)


def test_each_workspace_whose_work_took_too_much_is_named() -> None:
    text = recorded(alice_lab={"killed": True}, bob_lab={"killed": True, "state": "exited", "code": 137})
    assert sorted(evidence("workspace-out-of-memory", {WORKSPACES_PROBE: text})) == [
        "workspace alice-lab of alice: a process was killed for lack of memory",
        "workspace bob-lab of bob: a process was killed for lack of memory, and the container ended with status 137",
    ]
    assert evidence("workspace-out-of-memory", {WORKSPACES_PROBE: recorded()}) == []


def test_a_docker_that_is_silent_is_not_checked() -> None:
    with pytest.raises(Unread, match="Docker is silent"):
        evidence("workspace-out-of-memory", {WORKSPACES_PROBE: "docker silent\nend\n"})


#: a workspace with a GPU, one that lost its GPU, one without GPUs, and one whose image lacks nvidia-smi
DOCKER = """
case $1 in
ps) printf '%s\\n' 'alice-lab a1 GPU-1' 'bob-lab b2 GPU-2' 'carol-lab c3 ' 'dan-lab d4 GPU-4' ;;
exec)
  case $2 in
  a1) echo 'GPU 0: Tesla T4 (UUID: GPU-1)' && echo more ;;
  b2) echo 'Failed to initialize NVML: Unknown Error' && exit 255 ;;
  c3) echo 'Failed to initialize NVML: Unknown Error' ;;
  d4) echo 'exec: "nvidia-smi": executable file not found in $PATH' >&2 && exit 127 ;;
  esac ;;
esac"""


def inside(folder: Path, pid: str) -> str:
    """Return the output of a host whose docker.pid names this process."""
    (folder / "docker.pid").write_text(f"{pid}\n")
    script = CARDS_INSIDE.script.replace("/run/docker.pid", f"{folder}/docker.pid")
    done = subprocess.run(
        ("sh", "-euc", script), env=stub(folder, docker=DOCKER), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_only_a_workspace_that_was_given_cards_and_lost_them_is_named(tmp_path: Path) -> None:
    said = inside(tmp_path, str(os.getpid()))
    assert [line.partition(" ")[0] for line in said.splitlines()] == ["alice-lab", "bob-lab", "dan-lab"]
    assert evidence("workspace-lost-gpu", {CARDS_INSIDE: said}) == [
        "workspace bob-lab: Failed to initialize NVML: Unknown Error"
    ]


def test_a_docker_that_stands_still_is_not_started_by_the_question(tmp_path: Path) -> None:
    assert inside(tmp_path, "99999999") == ""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["source"])
def test_peoples_reports_lead_to_their_cause(case: dict[str, str]) -> None:
    """The causes were determined before any rule was run on these texts."""
    failure = KNOWN.classify(case["text"])
    assert (failure.rule.name if failure else "") == case["right"]


@pytest.mark.parametrize("rule", SIGNED, ids=lambda rule: rule.name)
@given(text=st.text(alphabet=string.printable + "\x1b\x00²\u202e", max_size=300), status=st.sampled_from([0, 1, 124]))
def test_garbage_never_raises(rule: FailureRule, text: str, status: int) -> None:
    assert rule.sign
    with suppress(Unread):
        evidence(rule.name, dict.fromkeys(rule.sign.probes, Answer(status, text)))
