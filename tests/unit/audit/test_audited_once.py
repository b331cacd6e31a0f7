"""Tests that hosts with equal facts are audited once.

Differences, and results that depend on the time, are judged per host.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.audit.auditing import judged
from hostwright.audit.auditor import AuditOptions, Auditor
from hostwright.audit.failures import Catalogue, FailureRule, Sign
from hostwright.audit.judging import alike, audited, judging
from hostwright.audit.judging.audited import audit_probes
from hostwright.audit.judging.context import AuditContext, once
from hostwright.audit.judging.judging import judge
from hostwright.fleet import Fleet, Listener, TargetHost
from hostwright.plan.desired import DesiredRole
from hostwright.plan.facts.memory import Memory
from hostwright.plan.model import Answer, Facts, Planned, Probe, Resource
from hostwright.resources.packages.packages import DPKG, is_broken
from hostwright.standard.roles.base.failures.host import CLOCK
from hostwright.standard.roles.driver import gpus
from hostwright.standard.roles.driver.xids.kernellog import kernel_lines

AT = datetime(2026, 11, 24, 12, tzinfo=UTC)
SEEN, OTHER = Probe("seen"), Probe("other")


def targets(folder: Path, count: int) -> tuple[TargetHost, ...]:
    (folder / "hosts.yml").write_text(
        json.dumps({"all": {"hosts": {f"gpu{number:04}": {} for number in range(count)}}})
    )
    return tuple(Fleet.load(folder).targets("all"))


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[TargetHost, ...]:
    return targets(tmp_path_factory.mktemp("site"), 2)


def rule(name: str, sees: object) -> FailureRule:
    return FailureRule(name, "", "cause", "cure", "source", sign=Sign("gpu", sees, (SEEN,)))  # type: ignore[arg-type]


def with_rules(monkeypatch: pytest.MonkeyPatch, *rules: FailureRule) -> None:
    catalogue = Catalogue(rules)
    monkeypatch.setattr(audited, "catalogue", lambda *_: catalogue)


def counted(kind: type, planned: Counter[int]) -> Callable[[Resource, Facts], Planned | None]:
    """The ``plan`` of a kind of state, which counts its calls by state."""
    own: Callable[[Resource, Facts], Planned | None] = vars(kind)["plan"]

    def plan(state: Resource, facts: Facts) -> Planned | None:
        planned[id(state)] += 1
        return own(state, facts)

    return plan


def test_equal_hosts_are_judged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the standard roles: after the first host, no state is planned again, also for a host with another package
    that no state reads. For hosts that differ in a package that some states read, only these are planned, once.
    """
    hosts, planned = targets(tmp_path, 60), Counter[int]()
    states = [state for role in hosts[0].desired.roles for state in role.resources]
    for kind in {base for state in states for base in type(state).__mro__ if "plan" in vars(base)}:
        monkeypatch.setattr(kind, "plan", counted(kind, planned))
    usual = dict.fromkeys(audit_probes(hosts[0]), Answer(1, ""))
    unread = {**usual, DPKG: Answer(1, "tzdata\t2024a\tii \tall\ttzdata\n")}
    other = {**usual, DPKG: Answer(1, "docker.io\t20.10\tii \tamd64\tdocker.io\n")}
    first = judge(hosts[0], Facts(usual), AT)
    assert set(planned) >= set(map(id, states))
    planned.clear()
    for target in hosts[1:50]:
        assert judge(target, Facts(usual), AT) == replace(first, host=target.name)
    assert not planned
    assert judge(hosts[49], Facts(unread), AT) == replace(first, host=hosts[49].name)
    assert not planned
    judge(hosts[50], Facts(other), AT)
    assert 0 < len(set(planned) & set(map(id, states))) < len(states) / 2
    planned.clear()
    for target in hosts[51:]:
        judge(target, Facts(other), AT)
    assert not planned


def test_a_stored_fleet_of_two_stacks_is_judged_once_for_each_kind_of_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every other host has the former stack, and one host of each stack another package.

    Of 24 hosts, four are judged, and no state is planned more often than in a fleet of these four.
    """
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    stacks, judgements, planned = ("tensorflow-2.9", "pytorch-2.14"), Counter[str](), Counter[int]()
    same, whole, made = alike._alike, judging._judged, Counter[str]()
    monkeypatch.setattr(alike, "_alike", lambda ctx, *rest: judgements.update([ctx.stack.name]) or same(ctx, *rest))
    monkeypatch.setattr(
        judging, "_judged", lambda target, *rest: made.update([target.stack.name]) or whole(target, *rest)
    )
    states = [
        state
        for target in mixed(tmp_path, stacks, 2).targets
        for role in target.desired.roles
        for state in role.resources
    ]
    for kind in {base for state in states for base in type(state).__mro__ if "plan" in vars(base)}:
        monkeypatch.setattr(kind, "plan", counted(kind, planned))
    plans = []
    for hosts in (4, 24):
        judgements.clear()
        planned.clear()
        made.clear()
        audit = mixed(tmp_path, stacks, hosts).audit().audit
        assert Counter((host.stack, host.status) for host in audit.hosts) == {
            (one, "new"): hosts // 2 for one in stacks
        }
        assert judgements == made == dict.fromkeys(stacks, 2)
        plans.append(planned.total())
    assert plans[1] == plans[0] > len(states)


def mixed(folder: Path, stacks: Sequence[str], hosts: int) -> Auditor:
    """An auditor of stored facts.

    The stacks alternate between hosts, and the last host of each stack has another package.
    """
    names = {f"gpu{number:02}": {"stack": stacks[number % len(stacks)]} for number in range(hosts)}
    (folder / "hosts.yml").write_text(json.dumps({"all": {"hosts": names}}))
    fleet = Fleet.load(folder)
    auditor = fleet.auditor(fleet.targets("all"), AuditOptions(offline=True), view=Listener(lambda _: None))
    for number, target in enumerate(auditor.targets):
        rows = "docker.io\t20.10\tii \tamd64\tdocker.io\n" if number >= hosts - len(stacks) else ""
        answers = {**dict.fromkeys(audit_probes(target), Answer(1, "")), DPKG: Answer(1, rows)}
        auditor.memory.keep(target.name, Facts(answers), AT)
    return auditor


def test_a_sign_is_looked_for_once_and_again_where_an_answer_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def sees(ctx: AuditContext) -> Iterator[str]:
        asked.append(ctx.text(SEEN))
        yield from (line for line in ctx.text(SEEN).splitlines() if "broken" in line)

    with_rules(monkeypatch, rule("broken", sees))
    hosts = targets(tmp_path, 100)
    usual = dict.fromkeys(audit_probes(hosts[0]), Answer(1, ""))
    for number, target in enumerate(hosts):
        text = "broken" if number == 70 else "fine"
        audit = judge(target, Facts({**usual, SEEN: Answer(0, text), OTHER: Answer(0, target.name)}), AT)
        assert [finding.evidence for finding in audit.findings] == ([("broken",)] if number == 70 else [])
    assert asked == ["fine", "broken"]


def test_who_reads_a_package_or_what_comes_of_the_facts_depends_on_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred hosts with different facts: each rule is judged once for each distinct value that it reads."""
    asked = Counter[str]()

    def package(ctx: AuditContext) -> Iterator[str]:
        asked["package"] += 1
        yield from (row.version for row in [ctx.packages.get("make")] if row and row.version != "4.3")

    def chosen(ctx: AuditContext) -> Iterator[str]:
        asked["chosen"] += 1
        yield from (row.name for row in ctx.packages_where(is_broken))

    def enough(ctx: AuditContext) -> Iterator[str]:
        asked["enough"] += 1
        if not ctx.settled("enough", lambda facts: int(facts[SEEN].text) >= 1000):
            yield "too little"

    with_rules(monkeypatch, rule("package", package), rule("chosen", chosen), rule("enough", enough))
    hosts = targets(tmp_path, 100)
    usual = dict.fromkeys(audit_probes(hosts[0]), Answer(1, ""))
    for number, target in enumerate(hosts):
        make = "make\t4.4\tii \n" if number % 10 == 9 else "make\t4.3\tii \n"
        tzdata = "tzdata\t2024a\tiU \n" if number % 4 == 3 else f"tzdata\t{number}\tii \n"
        amount = Answer(0, str(number if number % 50 == 49 else 1000 + number))
        audit = judge(target, Facts({**usual, DPKG: Answer(0, make + tzdata), SEEN: amount}), AT)
        assert [(finding.rule, finding.evidence) for finding in audit.findings] == [
            *([("package", ("4.4",))] if number % 10 == 9 else []),
            *([("chosen", ("tzdata",))] if number % 4 == 3 else []),
            *([("enough", ("too little",))] if number % 50 == 49 else []),
        ]
    assert asked == Counter(package=2, chosen=2, enough=2)


def test_what_looks_at_the_time_is_judged_for_each_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Counter[str]()

    def late(ctx: AuditContext) -> Iterator[str]:
        asked["late"] += 1
        yield f"seen at {ctx.now:%H:%M}"

    def steady(ctx: AuditContext) -> Iterator[str]:
        asked["steady"] += 1
        yield ctx.text(SEEN)

    with_rules(monkeypatch, rule("late", late), rule("steady", steady))
    hosts = targets(tmp_path, 5)
    facts = dict.fromkeys([*audit_probes(hosts[0]), SEEN], Answer(0, "x"))
    said = [judge(target, Facts(facts), AT + timedelta(minutes=number)) for number, target in enumerate(hosts)]
    evidence = [{finding.rule: finding.evidence for finding in audit.findings} for audit in said]
    assert [of_host["late"] for of_host in evidence] == [(f"seen at 12:0{number}",) for number in range(5)]
    assert {of_host["steady"] for of_host in evidence} == {("x",)}
    assert asked == {"late": 5, "steady": 1}


def test_the_standard_roles_judge_the_time_of_a_host_once_a_minute(
    two: tuple[TargetHost, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 100 hosts read within two minutes at different times, only the clock is judged for each."""
    asked = Counter[str]()
    monkeypatch.setattr(gpus, "kernel_lines", lambda *given: asked.update(["kernel log"]) or kernel_lines(*given))
    evidence = Catalogue.evidence
    monkeypatch.setattr(
        Catalogue, "evidence", lambda own, rule, ctx: asked.update([rule.name]) or evidence(own, rule, ctx)
    )
    target = replace(two[0], memory=Memory())
    usual = dict.fromkeys(audit_probes(target), Answer(0, "+0000\nsource journal\n"))
    for number in range(100):
        at = AT + timedelta(seconds=1.2 * number)
        judge(target, Facts({**usual, CLOCK: Answer(0, f"{at.timestamp():.0f}")}), at)
    assert asked.pop("clock-off") == 100
    assert asked["kernel log"] == 2
    assert max(asked.values()) == 2


def test_a_thread_waits_for_others_once_a_host(two: tuple[TargetHost, ...]) -> None:
    waited: list[str] = []

    class Counting:
        """A lock that counts how often threads acquire it without already holding it."""

        held = 0

        def __enter__(self) -> None:
            waited.extend(["once"] if not self.held else [])
            self.held += 1

        def __exit__(self, *_: object) -> None:
            self.held -= 1

    target = replace(two[0], memory=Memory())
    facts = Facts(dict.fromkeys(audit_probes(target), Answer(1, "")))
    target.memory._lock = Counting()  # type: ignore[assignment]
    judged(target, facts, AT)
    assert waited == ["once"]


def test_what_is_different_on_every_host_is_soon_not_noted_any_more_with_all_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a serial number: the rule that reads it is judged for each host, the other rule once."""
    asked: list[str] = []

    def sees(ctx: AuditContext) -> Iterator[str]:
        asked.append("steady")
        yield from ctx.text(SEEN).splitlines()

    def sees_serial(ctx: AuditContext) -> Iterator[str]:
        yield ctx.text(OTHER)

    with_rules(monkeypatch, rule("steady", sees), FailureRule(
        "serial", "", "cause", "cure", "source", sign=Sign("gpu", sees_serial, (OTHER,)),
    ))  # fmt: skip
    noted: list[str] = []
    noting = AuditContext.noting
    monkeypatch.setattr(AuditContext, "noting", lambda ctx, notes: noted.append("") or noting(ctx, notes))
    hosts = targets(tmp_path, 40)
    usual = dict.fromkeys(audit_probes(hosts[0]), Answer(1, ""))
    per_host: list[int] = []
    for target in hosts:
        before = len(noted)
        audit = judge(target, Facts({**usual, SEEN: Answer(0, "x"), OTHER: Answer(0, target.name)}), AT)
        assert [finding.evidence for finding in audit.findings] == [("x",), (target.name,)]
        per_host.append(len(noted) - before)
    assert asked == ["steady"]
    assert per_host[0] > 2 * per_host[-1] > 0


def test_a_function_of_many_rules_runs_once_for_all_hosts(two: tuple[TargetHost, ...]) -> None:
    asked: list[str] = []

    @once
    def words(ctx: AuditContext) -> list[str]:
        asked.append(ctx.text(SEEN))
        return ctx.text(SEEN).split()

    memory = Memory()
    for text, target in (("a b", two[0]), ("a b", two[1]), ("c", two[1])):
        ctx = AuditContext(target.desired, {}, Facts({SEEN: Answer(0, text)}), {}, AT, memory=memory)
        assert words(ctx) == words(ctx) == text.split()
    assert asked == ["a b", "c"]


def test_the_hashes_of_a_roles_states_are_made_once(
    two: tuple[TargetHost, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[DesiredRole] = []
    own = judging.desired_sha256
    monkeypatch.setattr(judging, "desired_sha256", lambda role: hashed.append(role) or own(role))
    record = {"roles": {"base": {"desired": "0" * 64, "states": []}}}
    base, memory = two[0].desired.roles[0], Memory()
    assert {judging.last_good(base, record, memory).why(state) for _ in range(20) for state in base.resources} == {
        "intent"
    }
    assert hashed == [base]


SOME = st.sampled_from(
    [
        Answer(0, ""),
        Answer(1, ""),
        Answer(0, "1 2\n"),
        Answer(0, "{}"),
        Answer(137, "", late_s=30),
        Answer(0, "Xid: 79"),
    ]
)


@settings(max_examples=30)  # each example judges two hosts by every rule, four times
@given(SOME, st.lists(st.tuples(st.integers(0, 10_000), SOME), max_size=5), st.integers(0, 120))
def test_an_audit_is_the_same_whatever_was_judged_before(
    two: tuple[TargetHost, ...], usual: Answer, differs: list[tuple[int, Answer]], minutes: int
) -> None:
    """The module's hosts share the memory of all earlier examples; ``alone`` has an empty memory."""
    probes, at = audit_probes(two[0]), AT + timedelta(minutes=minutes)
    answers = dict.fromkeys(probes, usual)
    for number, answer in differs:
        answers[probes[number % len(probes)]] = answer
        for target in two:
            alone = replace(target, memory=Memory())
            assert judge(target, Facts(answers), at) == judge(alone, Facts(answers), at)
