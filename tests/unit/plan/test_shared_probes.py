"""Tests of probes that share a subshell: same answers as when run alone, and no probe disturbs another."""

from __future__ import annotations

import re

import pytest

from hostwright.plan.model import Answer, Probe
from hostwright.plan.observing import ask
from hostwright.plan.probing import new_nonce, programs
from hostwright.plan.roles.role import RoleContext
from hostwright.plan.roles.wants import desire
from hostwright.transport.root.rootshell import RootShell
from tests.unit.plan.test_observing import Talking
from tests.unit.plan.test_passes import HERE_S, look
from tests.unit.support.forks import OF_A_LOOK, forks
from tests.unit.support.stacks import ROLES, load_stack

BEFORE, AFTER = Probe("echo before; [ -e /nowhere ]", shared=True), Probe("echo after", shared=True)
#: commands whose effect the next probe would see, or that would end it
ENDS = re.compile(r"^\s*(?:exit|cd|trap|exec|export|alias|unset(?! IFS$)|set -[a-eg-z]|PATH=)\b", re.MULTILINE)
SUBSHELL = re.compile(r"^\w+\(\) \(\n.*?^\)$", re.MULTILINE | re.DOTALL)  #: a function that is a subshell of its own


def test_together_they_cost_one_fork() -> None:
    # unique texts: programs are cached by the texts of their probes
    probes = [Probe(f"echo shared {number}", shared=True) for number in range(50)]
    assert forks(programs(probes, new_nonce())[0]) - 1 in OF_A_LOOK


def test_each_finds_a_shell_as_it_begins() -> None:
    untidy = Probe("IFS=:; set -f; set -- a b; echo untidy; false", shared=True)
    tidy = Probe('echo "$#"; words="a:b c"; for word in $words; do echo "$word"; done; echo /et[c]', shared=True)
    facts, _ = look([untidy, tidy])
    assert facts == {untidy: Answer(1, "untidy\n"), tidy: Answer(0, "0\na:b\nc\n/etc\n")}


@pytest.mark.parametrize("script", ["echo rude; exit 3", "echo rude; kill -TERM $(sh -c 'echo $PPID')"])
def test_where_one_ends_the_subshell_the_others_are_asked_again_each_by_itself(script: str) -> None:
    rude, other = Probe(script, shared=True), Probe("echo other")
    session = Talking()
    facts = ask(RootShell(session), [BEFORE, rude, AFTER, other])  # type: ignore[arg-type]
    assert {probe: answer.text for probe, answer in facts.items()} == {
        BEFORE: "before\n", rude: "rude\n", AFTER: "after\n", other: "other\n"
    }  # fmt: skip
    assert facts[BEFORE].status == 1 and facts[rude].status in {3, 143}
    assert len(session.programs) == 2
    assert b"echo after" in session.programs[1] and b"echo before" not in session.programs[1]


def test_where_one_hangs_all_others_answer_and_it_alone_is_late() -> None:
    hangs = Probe("echo begun; sleep 4321; echo never", shared=True)
    probes = [BEFORE, hangs, AFTER]
    first, _ = look(probes, timeout_s=HERE_S)
    assert first == {BEFORE: Answer(1, "before\n")}, "another one may have taken the time"
    facts = ask(RootShell(Talking()), probes, timeout_s=HERE_S)  # type: ignore[arg-type]
    assert (facts[BEFORE].text, facts[AFTER].text) == ("before\n", "after\n")
    assert set(facts.late) == {hangs}


@pytest.fixture(scope="module")
def standard() -> list[Probe]:
    """The probes of all standard roles that share a subshell, including root probes, as one user."""
    found: dict[Probe, None] = {}
    for name in ("tensorflow-2.9-nccl-tensorrt", "pytorch-2.14"):
        stack = load_stack(name)
        roles = [(role, role.variables()) for role in ROLES if role.name in stack.roles]
        shared = (probe for probe in desire("gpu01", RoleContext(stack), roles).probes() if probe.shared)
        found |= {Probe(probe.script, cap_bytes=probe.cap_bytes, shared=True): None for probe in shared}
    return list(found)


def test_those_of_the_standard_roles_answer_together_as_each_by_itself(standard: list[Probe]) -> None:
    # after a second, free space and running processes differ
    tools = [probe for probe in standard if "df -k" not in probe.script and "/proc/[0-9]" not in probe.script]
    together, _ = look(tools)
    assert len(tools) >= 20
    assert together == look(tools, alone=True)[0]


def test_those_of_the_standard_roles_leave_the_shell_as_it_was(standard: list[Probe]) -> None:
    assert [probe.script for probe in standard if ENDS.search(SUBSHELL.sub("", probe.script))] == []
