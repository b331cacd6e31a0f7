"""Tests that hosts with equal desired states and facts are planned once; different hosts only where they differ."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.fleet import Fleet
from hostwright.plan.facts.memory import Memory
from hostwright.plan.model import Answer, Change, Facts, Probe, Resource, Step
from hostwright.plan.planning import plan_host
from hostwright.plan.roles.role import Role, RoleContext, role
from hostwright.plan.roles.wants import desire
from hostwright.plan.targets import TargetHost
from tests.unit.support.stacks import load_stack

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
STACK = load_stack("tensorflow-2.9")


@dataclass(frozen=True)
class Marked(Resource):
    """A state that counts its plans."""

    name: str
    planned: Counter[str]

    def probes(self) -> tuple[Probe, ...]:
        return (Probe(f"cat {self.name}"),)

    def plan(self, facts: Facts) -> Change | None:
        self.planned[self.name] += 1
        have = facts[self.probes()[0]].text
        return None if have == "right" else Change(self.name, have, "right", (Step("true"),))

    def removal(self) -> tuple[Resource, ...]:
        return ()


@dataclass(frozen=True)
class Marks:
    count: int = 3


@dataclass(frozen=True)
class Pool:
    name: str = "pool"


def counted(planned: Counter[str], called: Counter[str]) -> tuple[Role, Role, Role]:
    """Three roles that count their plans; the last one reads the variables of the others."""

    @role()
    def one(v: Marks, ctx: RoleContext) -> Iterator[Resource]:
        """One."""
        called["one"] += 1
        yield from (Marked(f"one-{number}", planned) for number in range(v.count))

    @role()
    def two(v: Pool, ctx: RoleContext) -> Iterator[Resource]:
        """Two."""
        called["two"] += 1
        yield Marked(f"two-{v.name}", planned)

    @role()
    def all_of(v: Marks, ctx: RoleContext) -> Iterator[Resource]:
        """All."""
        called["all_of"] += 1
        yield Marked(f"all-{sum(getattr(values, 'count', 0) for _, values in ctx.roles)}", planned)

    return one, two, all_of


def answers(desired: Any, wrong: Mapping[str, str] | None = None) -> Facts:
    texts = {Probe(f"cat {name}"): text for name, text in (wrong or {}).items()}
    return Facts({probe: Answer(0, texts.get(probe, "right")) for probe in desired.probes()})


def test_equal_hosts_are_planned_once_and_one_that_differs_in_one_answer_only_there() -> None:
    planned, memory = Counter[str](), Memory()
    one, two, _ = counted(planned, Counter())
    roles = [(one, Marks()), (two, Pool())]
    desired = desire("h", RoleContext(STACK), roles, memory)
    for number in range(1000):
        name = f"h{number}"
        wrong = {"one-1": f"of {name}"} if number == 500 else {}
        plan = plan_host(replace(desired, host=name), answers(desired, wrong), NOW, memory).plan
        assert plan.host == name
        (changes,) = [of_role.changes for of_role in plan.roles if of_role.role == "one"] or [()]
        assert [change.have for change in changes] == (["of h500"] if number == 500 else [])
    assert planned == {"one-0": 1, "one-1": 2, "one-2": 1, "two-pool": 1}


def test_a_role_is_asked_once_for_all_hosts_with_the_same_variables() -> None:
    called, memory = Counter[str](), Memory()
    one, two, all_of = counted(Counter(), called)
    marks, pools = [Marks(2), Marks(3)], [Pool("a"), Pool("b")]
    for number in range(100):
        values = [(one, marks[0]), (two, pools[number % 2]), (all_of, marks[0])]
        ctx = RoleContext(STACK, roles=tuple(values))
        found = desire(f"h{number}", ctx, values, memory)
        assert found.roles[1].resources[0].name == f"two-{'ab'[number % 2]}"
        assert found.roles[2].resources[0].name == "all-4"
    # a role that reads the variables of other roles is planned again if any of these differ
    assert called == {"one": 1, "two": 2, "all_of": 2}
    values = [(one, marks[1]), (two, pools[0]), (all_of, marks[0])]
    found = desire("other", RoleContext(STACK, roles=tuple(values)), values, memory)
    assert found.roles[2].resources[0].name == "all-5"
    assert called == {"one": 2, "two": 2, "all_of": 3}


def targets(folder: Path, **hosts: Mapping[str, Any]) -> tuple[TargetHost, ...]:
    (folder / "hosts.yml").write_text(json.dumps({"all": {"hosts": dict(hosts)}}))
    return tuple(Fleet.load(folder).targets("all"))


def test_hosts_of_which_the_same_is_wanted_share_their_states(tmp_path: Path) -> None:
    own = {"base_packages": ["dkms"]}
    alike, other, also = targets(tmp_path, a={}, b=own, c={"rack": 7})
    assert alike.desired.roles is also.desired.roles
    assert alike.desired.probes() is also.desired.probes()
    assert (alike.desired.host, also.desired.host) == ("a", "c")
    differing = {one.name for one, two in zip(alike.desired.roles, other.desired.roles, strict=True) if one is not two}
    assert differing == {"base"}
    assert alike.desired.roles == targets(tmp_path, a={})[0].desired.roles


def test_force_and_fewer_roles_are_other_wishes(tmp_path: Path) -> None:
    (target,) = targets(tmp_path, a={})
    assert replace(target, force=True).context.force
    assert not target.context.force
    fewer = replace(target, roles=target.roles[:1])
    assert [one.name for one in fewer.desired.roles] == [target.roles[0].name]
    assert len(target.desired.roles) == len(target.roles)


@pytest.fixture(scope="module")
def standard(tmp_path_factory: pytest.TempPathFactory) -> TargetHost:
    return targets(tmp_path_factory.mktemp("site"), a={})[0]


SOME = st.sampled_from(
    [Answer(0, ""), Answer(1, ""), Answer(0, "1"), Answer(0, "x y\n"), Answer(137, "", late_s=30), Answer(0, "{}")]
)


@given(SOME, st.lists(st.tuples(st.integers(0, 10_000), SOME), max_size=6), st.integers(0, 3))
def test_a_plan_is_the_same_whatever_was_planned_before(
    standard: TargetHost, usual: Answer, differs: list[tuple[int, Answer]], more: int
) -> None:
    """The module's target shares the memory of all earlier examples."""
    probes = standard.desired.probes()
    given_facts = dict.fromkeys(probes, usual)
    hosts = [Facts(given_facts)]
    for number, answer in differs:
        given_facts = {**given_facts, probes[number % len(probes)]: answer}
        hosts.append(Facts(given_facts))
    for facts in hosts[more:]:
        remembered = plan_host(standard.desired, facts, NOW, standard.memory)
        assert remembered == plan_host(standard.desired, facts, NOW)
