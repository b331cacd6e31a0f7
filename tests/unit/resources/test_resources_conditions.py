"""Branches on the host, scripts with a probe of their own, and conditions that refuse: all of them pure."""

from hostwright.plan.model import Answer, Facts, Probe, Refusal
from hostwright.resources.conditions import Answers, Require, Script, When
from hostwright.resources.files.files import Absent

SWITCH = Probe("ls /dev/nvidia-nvswitch0")


def facts(**answers: Answer) -> Facts:
    file, fixed = Absent("/x").probes()
    known = {"switch": SWITCH, "due": Probe("due?"), "file": file}
    return Facts({fixed: Answer(0, ""), **{known[name]: answer for name, answer in answers.items()}})


def test_a_state_holds_only_where_its_condition_does():
    state = When(Answers(SWITCH), Absent("/x"))
    assert state.probes() == (SWITCH, *Absent("/x").probes())
    there, not_there = Answer(0, ""), Answer(1, "")
    assert state.plan(facts(switch=not_there, file=there)) is None
    assert state.plan(facts(switch=there, file=there)) == Absent("/x").plan(facts(file=there))


def test_a_script_is_opaque_and_runs_only_when_its_probe_says_so():
    script = Script("firmware", "1.2", Probe("due?"), "flash", artifacts=("firmware",))
    assert script.plan(facts(due=Answer(0, "1.2\n"))) is None
    change = script.plan(facts(due=Answer(1, "1.1\nmore\n")))
    assert change is not None
    assert (change.have, change.want, change.artifacts) == ("1.1", "1.2", ("firmware",))
    assert change.warnings == ("opaque: changed by a script; only its probe can verify the result",)
    assert [step.script for step in change.steps] == ["flash"]


def test_an_unmet_requirement_refuses_with_what_the_host_says():
    require = Require("link", Probe("due?"), "the InfiniBand link is down; look at the cable")
    assert require.plan(facts(due=Answer(0, ""))) is None
    change = require.plan(facts(due=Answer(1, "state:\n DOWN")))
    assert isinstance(change, Refusal)
    assert change.sentence == "the InfiniBand link is down; look at the cable (state: DOWN)"
