"""What holds of every decision, whatever is found."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.audit.failures import Hardware
from hostwright.rebuild.rebuild import OUTCOMES, STARTS, WAYS, Rebuild
from hostwright.rebuild.ways.diagnosis import Diagnosis, Power, Reach, Reinstall
from hostwright.rebuild.ways.hardware import broken
from hostwright.rebuild.ways.ways import Decision, decide, decide_again
from tests.unit.support.audits import LIAR, host
from tests.unit.support.known import SIGNED, TREATMENTS
from tests.unit.support.rebuilds import NOW, finding, plan, xid

NAMES = [rule.name for rule in SIGNED]
ROLES = ["base", "driver", "cuda", "tensorflow"]

findings = st.one_of(
    st.sampled_from(NAMES).map(finding),
    st.lists(st.integers(0, 999), max_size=4).map(lambda numbers: xid(*numbers)),
    st.sampled_from(NAMES).flatmap(lambda name: st.text(max_size=40).map(lambda text: finding(name, text))),
)
audits = st.one_of(
    st.none(),
    st.just(LIAR),
    st.just(host("gpu07", "unread", sentence="no sudo")),
    st.lists(findings, max_size=3).map(lambda diagnosis: host("gpu07", findings=tuple(diagnosis))),
)
plans = st.one_of(
    st.none(),
    st.lists(st.sampled_from(ROLES), unique=True).map(lambda roles: plan(*roles)),
    st.sampled_from(["free disk", "kernel"]).map(lambda what: plan("base", "driver", refusal="no", what=what)),
)
ways = st.lists(st.sampled_from(WAYS), max_size=4).map(tuple)
keys = st.lists(st.sampled_from([*NAMES, "xid-79", "xid-48"]), max_size=3).map(tuple)
rebuilds = st.builds(
    lambda taken, outcome, rules: Rebuild("gpu07", "run", NOW, "ada", taken, outcome, rules=rules),
    ways, st.sampled_from(OUTCOMES), keys,
)  # fmt: skip
counts = st.one_of(st.none(), st.integers(0, 8))
diagnoses = st.builds(
    Diagnosis,
    host=st.just("gpu07"),
    reach=st.sampled_from(get_args(Reach)),
    sentence=st.text(max_size=20),
    power=st.sampled_from([None, *get_args(Power)]),
    power_sentence=st.text(max_size=20),
    audit=audits,
    plan=plans,
    history=st.lists(rebuilds, max_size=3).map(tuple),
    tried=ways,
    can_reinstall=st.sampled_from(get_args(Reinstall)),
    treatments=st.just(TREATMENTS),
)
starts = st.sampled_from([None, *WAYS])
AT_ONCE = sorted(name for name, one in TREATMENTS.items() if isinstance(one, Hardware) and one.tries == 0)


def sound(diagnosis: Diagnosis, decision: Decision) -> None:
    """What holds of every decision."""
    assert decision.way in WAYS and decision.rules and (decision.reasons or decision.refusal)
    if decision.refusal:
        assert decision.way in ("nothing", "hand over")
    if "reinstall" in (decision.way, *decision.escalation):
        assert diagnosis.can_reinstall
        assert diagnosis.can_reinstall == "command" or diagnosis.usable_bmc
    if decision.way == "power on" or decision.by == "bmc":
        assert diagnosis.usable_bmc
    if decision.way in ("repair", "relayer"):
        assert diagnosis.read is not None and diagnosis.reach == "answers" and not diagnosis.refusals
    assert (decision.way == "power cycle") == bool(decision.by)
    assert not {"trust", "hand over", "nothing"} & set(decision.escalation)


@settings(max_examples=400)
@given(diagnoses, starts)
def test_every_decision_is_sound(diagnosis: Diagnosis, start):
    sound(diagnosis, decide(diagnosis, start))


@settings(max_examples=400)
@given(diagnoses)
def test_only_a_silent_host_is_reinstalled_unasked(diagnosis: Diagnosis):
    decision = decide(diagnosis)
    if "reinstall" in (decision.way, *decision.escalation):
        assert diagnosis.reach == "silent"


@settings(max_examples=400)
@given(diagnoses, st.sampled_from(AT_ONCE))
def test_broken_hardware_is_handed_over_unless_another_way_is_asked_for(diagnosis: Diagnosis, name: str):
    diagnosis = replace(diagnosis, reach="answers", audit=host("gpu07", findings=(finding(name),)), tried=())
    assert broken(diagnosis)
    assert decide(diagnosis).way == "hand over"
    for start in STARTS:
        decision = decide(diagnosis, start)
        assert decision.refusal or decision.way == start
        if decision.way == start:
            assert any("its hardware is broken" in reason for reason in decision.reasons)


@settings(max_examples=400)
@given(diagnoses, st.sampled_from([None, *STARTS]))
def test_a_host_on_which_nothing_helps_is_left_in_the_end(diagnosis: Diagnosis, start):
    diagnosis = replace(diagnosis, tried=())
    first = decision = decide(diagnosis, start)
    for _ in range(8):
        if decision.refusal or decision.way == "hand over":
            return
        diagnosis = replace(diagnosis, tried=(*diagnosis.tried, decision.way))
        decision = decide_again(first, diagnosis, start)
        sound(diagnosis, decision)
    raise AssertionError(f"it goes in a circle: {diagnosis.tried}")
