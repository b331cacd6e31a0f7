"""Which plans an operator agrees to, and that nobody is asked, and nothing planned, where somebody agreed before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from hostwright.apply.rollout import consent as module
from hostwright.apply.rollout.connections import Connections
from hostwright.apply.rollout.consent import consent
from hostwright.apply.rollout.goals import AS_WANTED, Goal
from hostwright.apply.rollout.rollout import Results
from hostwright.apply.run import Agreed, Consent, Run
from hostwright.common.errors import Unreachable
from hostwright.common.request import Request
from hostwright.plan.model import Change, Plan, RolePlan, Step
from hostwright.plan.planning import HostPlan
from hostwright.plan.targets import Roster, Targets


def planned(host: str, want: str = "470") -> Plan:
    change = Change("driver", "460", want, (Step("true"),))
    return Plan(host, "house", (RolePlan("driver", (), (change,)),))


SILENT = Unreachable("gpu03", "no answer")
GONE = "the driver 460"


class Asked:
    """Counts the questions, and the hosts that are planned for them."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        (tmp_path / "hosts.yml").write_text("all: {hosts: {gpu01: {}, gpu02: {}, gpu03: {}}}\n")
        self.roster = Roster.load(tmp_path)
        self.looks: list[str] = []
        self.questions: list[tuple[tuple[str, ...], int]] = []
        monkeypatch.setattr(module, "plan_each", self.plan_each)

    def plan_each(self, targets: Targets, _connections: Connections, _goal: Goal) -> Results[HostPlan]:
        self.looks += [target.name for target in targets]
        names = [name for name in targets.by_name if name != "gpu03"]
        errors = (SILENT,) if "gpu03" in targets.by_name else ()
        return Results(tuple(HostPlan(planned(name), losses=(GONE,)) for name in names), errors)

    def ask(self, consequences: Sequence[str], hosts: int) -> None:
        self.questions.append((tuple(consequences), hosts))

    def consent(self, request: Request, *, asks: bool = True, **saved: Plan) -> Consent:
        ask = self.ask if asks else None
        run = Run("provision", self.roster, self.roster.targets("all", ["base"]), Connections(), request)
        return consent(run, AS_WANTED, saved=saved, ask=ask)


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(tmp_path, monkeypatch)


def test_each_host_is_planned_once_for_the_question_and_that_plan_is_agreed_to(asked: Asked) -> None:
    agreed = asked.consent(Request())
    assert asked.looks == ["gpu01", "gpu02", "gpu03"]
    assert agreed.plans == {name: Agreed(planned(name), (GONE,)) for name in ("gpu01", "gpu02")}
    assert agreed.errors == {"gpu03": SILENT}, "nobody saw what would become of it"


def test_of_a_host_with_a_saved_plan_that_plan_is_agreed_to(asked: Asked) -> None:
    """What it takes away is known from a plan of now; where that is another, the host is refused."""
    saved = planned("gpu01", want="465")
    agreed = asked.consent(Request(), gpu01=saved)
    assert asked.looks == ["gpu01", "gpu02", "gpu03"]
    assert agreed.plans == {"gpu01": Agreed(saved, (GONE,)), "gpu02": Agreed(planned("gpu02"), (GONE,))}
    assert asked.questions == [((f"removes permanently from gpu[01-02] (2 hosts): {GONE}",), 3)]


@pytest.mark.parametrize(("yes", "asks"), [(True, True), (False, False)])
def test_nobody_is_asked_and_nothing_planned_where_that_is_settled(asked: Asked, yes: bool, asks: bool) -> None:
    saved = planned("gpu01")
    assert asked.consent(Request(yes=yes), asks=asks) == Consent()
    assert asked.consent(Request(yes=yes), asks=asks, gpu01=saved) == Consent({"gpu01": Agreed(saved)})
    assert (asked.looks, asked.questions) == ([], [])
