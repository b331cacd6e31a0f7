"""Tests that desired states and facts give a plan: pure, ordered, and refused by the rules before any change."""

from dataclasses import dataclass, replace

import pytest

from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.host.hostfacts import AVX, OS_RELEASE, PCI, PYTHONS, UNAME
from hostwright.plan.model import Answer, Change, Facts, Probe, Resource, Step
from hostwright.plan.planning import PREFLIGHT, at_work, disturbing, make_plan, plan_host
from hostwright.plan.roles.role import RoleContext, discover
from hostwright.plan.roles.wants import desire
from hostwright.resources.conditions import Answers, When
from hostwright.resources.system.services import Disturbing
from hostwright.stack.rules import HostFacts, check_host
from hostwright.standard.roles.driver.states.gpu_use import HOLDERS
from tests.places import INVENTORY
from tests.unit.support.stacks import RULES, for_all_roles, load_stack, with_values

STACK = load_stack("tensorflow-2.9", [INVENTORY / "stacks"])
FITS = {
    OS_RELEASE: "ID=ubuntu\nVERSION_ID=20.04\n",
    UNAME: "5.4.0-150-generic x86_64\n",
    PCI: "0x10de 0x030200 0x1eb8\n",
    PYTHONS: "/usr/bin/python3 3.8\n",
}


@dataclass(frozen=True)
class Named(Resource):
    """A state that is not as desired if its probe fails."""

    name: str

    def probes(self):
        return (Probe(f"test -e {self.name}"),)

    def plan(self, facts):
        wrong = not facts[self.probes()[0]].ok
        return Change(self.name, "absent", "there", (Step(f"touch {self.name}"),)) if wrong else None

    def removal(self):
        return (Named(f"no-{self.name}"),)


def desired(**roles: tuple[str, ...]) -> Desired:
    states = tuple(DesiredRole(name, needs, (Named(name),)) for name, needs in roles.items())
    return Desired("gpu01", STACK, states, rules=RULES)


def facts(one: Desired, wrong: set[str], changed: dict[Probe, str] | None = None) -> Facts:
    """A host that fits, except for ``changed``; the states in ``wrong`` are not as desired."""
    texts = {**FITS, **(changed or {})}
    answers = {probe: Answer(0, texts.get(probe, "")) for probe in one.probes()}
    return Facts(answers | {Probe(f"test -e {name}"): Answer(1, "") for name in wrong})


@dataclass(frozen=True)
class Used(Named):
    """A state that jobs use; the file beside it lists them."""

    def probes(self):
        return (*super().probes(), Probe(f"cat {self.name}.users"))

    def plan(self, facts):
        change = super().plan(facts)
        return change and replace(change, disturbs="ends jobs")

    def users(self, facts):
        return tuple(facts[self.probes()[1]].text.split())


@dataclass(frozen=True)
class Seen(Named):
    """A state that detects and reports its users."""

    def notes(self, facts):
        return (f"{self.name} is {'there' if facts[self.probes()[0]].ok else 'absent'}",)


@dataclass(frozen=True)
class Replaced(Named):
    """A state whose change removes the previous one."""

    def losses(self, facts):
        return (f"the old {self.name}",) if facts[self.probes()[0]].status == 1 else ()


LAYERS = desired(base=(), cuda=("base",), cudnn=("cuda",))
WHOLE = desired(base=(), driver=("base",), cuda=("base",), cudnn=("cuda",), tensorflow=("base",))


def test_only_what_differs_is_planned():
    plan = make_plan(LAYERS, facts(LAYERS, {"cudnn"}))
    assert [role.role for role in plan.roles] == ["cudnn"]


def test_what_a_state_sees_is_a_note_whether_or_not_anything_differs():
    seen = Desired("gpu01", STACK, (DesiredRole("cuda", (), (Seen("gcc"), Named("nvcc"))),), rules=RULES)
    there, absent = plan_host(seen, facts(seen, set())), plan_host(seen, facts(seen, {"gcc"}))
    assert (there.plan.empty, there.notes[-1:]) == (True, ("gcc is there",))
    assert (absent.plan.empty, absent.notes[-1:]) == (False, ("gcc is absent",))


@pytest.mark.parametrize(
    "state",
    [
        Replaced("cuda"),
        When(Answers(Probe("lspci")), Replaced("cuda")),
        Disturbing(Replaced("cuda"), "ends jobs", Answers(Probe("lspci"))),
    ],
    ids=["alone", "on some hosts", "disturbing"],
)
def test_what_a_change_takes_away_for_good_is_known_beside_the_plan(state):
    one = Desired("gpu01", STACK, (DesiredRole("cuda", (), (state, Named("nvcc"))),), rules=RULES)
    assert plan_host(one, facts(one, {"cuda", "nvcc"})).losses == ("the old cuda",)
    assert plan_host(one, facts(one, {"nvcc"})).losses == ()
    unanswered = {**facts(one, {"nvcc"}), Probe("test -e cuda"): Answer(137, "", late_s=30)}
    assert plan_host(one, Facts(unanswered)).losses == ()


def test_nothing_is_lost_on_a_host_on_which_nothing_is_changed():
    state = When(Answers(Probe("lspci")), Replaced("cuda"))
    one = Desired("gpu01", STACK, (DesiredRole("cuda", (), (state, Named("nvcc"))),), rules=RULES)
    elsewhere = {**facts(one, {"cuda", "nvcc"}), Probe("lspci"): Answer(1, "")}
    assert plan_host(one, Facts(elsewhere)).losses == ()


def test_a_role_waits_for_the_needs_of_its_needs():
    """cuda has nothing to do, but cudnn still waits for base."""
    plan = make_plan(LAYERS, facts(LAYERS, {"base", "cudnn"}))
    assert {role.role: set(role.needs) for role in plan.roles}["cudnn"] == {"cuda", "base"}


def test_host_as_desired_is_not_refused_by_a_newer_rule():
    assert make_plan(LAYERS, facts(LAYERS, set(), {UNAME: "6.8.0 x86_64"})).empty


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({UNAME: "6.8.0-40-generic x86_64"}, "470.239.06"),
        ({PCI: "0x10de 0x030200 0x2330"}, "TensorFlow 2.12"),
        ({OS_RELEASE: "ID=fedora\nVERSION_ID=40\n"}, "fedora"),
        ({UNAME: "5.4.0 aarch64"}, "aarch64"),
    ],
)
def test_unsupported_host_is_refused_with_the_nearest_stack(changed, said):
    plan = make_plan(WHOLE, facts(WHOLE, {"cuda"}, changed))
    assert plan.roles[0].role == PREFLIGHT
    assert said in " ".join(plan.refusals)


def test_a_host_without_avx_is_refused():
    answers = dict(facts(WHOLE, {"cuda"})) | {AVX: Answer(1, "")}
    assert "avx" in " ".join(make_plan(WHOLE, Facts(answers)).refusals).lower()


def test_rule_applies_if_one_of_its_roles_is_planned():
    """Installing a time server needs no AVX.

    A kernel too new for the driver does not matter if the driver is not changed.
    """
    changed = {UNAME: "6.8.0-40-generic x86_64", PCI: "0x10de 0x030200 0x2330"}
    for name, rules in (("base", []), ("cuda", ["gpu-cuda"]), ("driver", ["gpu-driver", "driver-kernel"])):
        one = desired(**{name: ()})
        answers = dict(facts(one, {name}, changed)) | {AVX: Answer(1, "")}
        plan = make_plan(one, Facts(answers))
        assert [change.rule for role in plan.roles for change in role.changes if role.role == PREFLIGHT] == rules
    host = HostFacts("ubuntu", "20.04", gpus=((0x10DE, 0x20B0),))
    old = with_values(STACK, driver={"version": "450.80.02", "fabric_manager": None})
    for name in ("driver", "cuda", "tensorflow"):
        assert [one.rule for one in check_host(old, host, RULES, {name})] == ["cuda-driver"]
    assert check_host(old, host, RULES, {"base", "container"}) == []


def test_all_roles_of_a_bare_host_ask_each_question_once():
    whole = desire("gpu01", RoleContext(for_all_roles()), [(role, role.variables()) for role in discover()])
    probes = whole.probes()
    assert len(set(probes)) == len(probes)
    assert len([probe for probe in probes if "db:Status-Abbrev" in probe.script]) == 1


def test_disturbed_users_come_from_gpus_and_changes():
    """A job that uses no GPU still runs from an environment."""
    one = Desired("gpu01", STACK, (DesiredRole("a", (), (Named("plain"), Used("venv"), Used("idle"))),))
    answers = {Probe("cat venv.users"): "tensorboard python3", HOLDERS: "4711 - trainer\n"}
    facts_now = facts(one, {"venv", "idle", "plain"}, answers)
    assert plan_host(one, facts_now).busy == ("trainer (4711)", "tensorboard", "python3")
    states = disturbing(one, facts_now)
    assert states == (Used("venv"),)
    later = facts(one, {"venv", "idle", "plain"}, {Probe("cat venv.users"): "python3"})
    assert at_work(one, states, later, reboots=False).everyone == ("python3",)
