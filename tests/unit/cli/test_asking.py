"""Confirmation: before a change disturbs or destroys anything, a question is asked once at a terminal, or the change is
refused."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from invoke import Context, Exit

from hostwright.apply.rollout.connections import Connections
from hostwright.apply.rollout.consent import consent
from hostwright.apply.rollout.goals import AS_WANTED
from hostwright.apply.rollout.rollout import Results
from hostwright.apply.run import Run
from hostwright.cli.tasks import change, restore
from hostwright.common.request import Request
from hostwright.plan.model import Change, Plan, Planned, Reboot, Refusal, RolePlan, Step
from hostwright.plan.planning import HostPlan
from hostwright.rebuild.rebuild import Way
from hostwright.rebuild.run import Decisions, refuse_overwriting
from hostwright.rebuild.run import consent as consent_to_rebuild
from hostwright.rebuild.ways.ways import Decision
from tests.unit.support.terminals import Terminal

MOTD = Change("file /etc/motd", "absent", "as wanted", (Step("true"),))
BOOT = Reboot("kernel", "old", "new", "the running kernel was removed")
LOST = Change("driver", "460", "470", (Step("true"),), disturbs="unloads the driver")
RULE = Refusal("distribution", "does not fit", "fits", "distribution", "it is another one")


def planned(*states: Planned, host: str = "gpu01", busy: tuple[str, ...] = ()) -> HostPlan:
    roles = (RolePlan("driver", (), states),) if states else ()
    return HostPlan(Plan(host, "house", roles), busy)


@dataclass
class Stage:
    """With or without a terminal; a fleet that reports its plans, and a record of its changes."""

    inventory: Path
    patch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    plans: tuple[HostPlan, ...] = ()
    decisions: dict[str, Decision] = field(default_factory=dict)
    done: list[tuple[str, bool]] = field(default_factory=list)
    looks: int = 0
    screen: str = ""

    def types(self, answer: str) -> None:
        """Simulate a user at a terminal who types this."""
        self.patch.setattr("sys.stdin", Terminal(answer))

    def run(self, task: Any, **words: Any) -> int:
        """Return the exit status of a verb on both hosts; ``screen`` has its standard error."""
        err = Terminal()
        self.patch.setattr("sys.stderr", err)
        self.looks, self.screen = 0, ""
        self.done.clear()
        try:
            task(Context(), hosts="gpu01,gpu02", inventory=[str(self.inventory)], **words)
        except Exit as ended:
            return ended.code
        finally:
            self.screen = " ".join(err.getvalue().split())
        return 0


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Stage:
    bmc = {"hostwright_bmc": "https://bmc.example.org", "hostwright_bmc_user": "a", "hostwright_bmc_password": "b"}
    variables = ", ".join(f"{name}: '{value}'" for name, value in bmc.items())
    (tmp_path / "hosts.yml").write_text(f"all: {{vars: {{{variables}}}, hosts: {{gpu01: {{}}, gpu02: {{}}}}}}\n")
    for name in ("HOSTWRIGHT_YES", "HOSTWRIGHT_SITE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))  # a pipe is not a terminal, whatever its content is
    monkeypatch.setenv("TERM", "dumb")
    made = Stage(tmp_path, monkeypatch, capsys)
    goal = SimpleNamespace(notes=())

    def plan(*_: Any, **__: Any) -> Results[HostPlan]:
        made.looks += 1
        return Results(made.plans, ())

    def changed(name: str) -> Callable[..., Any]:
        def run(_self: Any, targets: Any, *given: Any, ask: Any = None, saved: Any = None, **__: Any) -> Any:
            request = next((each for each in given if isinstance(each, Request)), Request())
            asked = Run(name, _self, targets, Connections(), request)
            agreed = consent(asked, AS_WANTED, saved=saved or {}, ask=ask)
            made.done.append((name, request.yes or any(each.losses is not None for each in agreed.plans.values())))
            return SimpleNamespace(results=Results((), ()), status=0, run="run")

        return run

    def rebuilt(_self: Any, targets: Any, start: Any, request: Request, *, ask: Any, decided: Any, **__: Any) -> Any:
        refuse_overwriting(targets.by_name if start == "reinstall" else (), request, ask)
        decided(Decisions(made.decisions))
        consent_to_rebuild(made.decisions, request, ask)
        made.done.append(("rebuild", request.yes))
        return SimpleNamespace(status=0)

    fleet = "hostwright.fleet.Fleet"
    for name in ("provision", "remove", "rollback", "power"):
        monkeypatch.setattr(f"{fleet}.{name}", changed(name))
    monkeypatch.setattr(f"{fleet}.plan", plan)
    monkeypatch.setattr("hostwright.apply.rollout.consent.plan_each", plan)
    monkeypatch.setattr(f"{fleet}.removal", lambda *_: goal)
    monkeypatch.setattr(f"{fleet}.rebuild", rebuilt)
    monkeypatch.setattr(f"{fleet}.decide", lambda *_, **__: Decisions(made.decisions))
    for name in ("changing.show_outcomes", "changing.show_plans", "views.power.show_powered"):
        monkeypatch.setattr(f"hostwright.cli.{name}", lambda *_, **__: None)
    for name in ("show_rebuilt", "announce", "show_decisions"):
        monkeypatch.setattr(f"hostwright.cli.views.rebuilding.rebuilds.{name}", lambda *_, **__: None)
    return made


def decision(way: Way, *escalation: Way, refusal: str = "") -> Decision:
    return Decision(way, escalation=escalation, refusal=refusal)


OFF = {"order": "off"}
CYCLE = {"order": "cycle"}
WIPE = {"from_": "reinstall"}


@pytest.mark.parametrize(
    ("task", "words", "what"),
    [(change.remove, {}, "`remove` removes layers from hosts"), (restore.power, OFF, "`power off` ends all work"),
     (restore.power, CYCLE, "`power cycle` ends all work"), (restore.rebuild, WIPE, "overwrites disks")],
    ids=["remove", "power off", "power cycle", "rebuild"],
)  # fmt: skip
def test_what_destroys_is_refused_where_nobody_can_be_asked(
    stage: Stage, task: Any, words: dict[str, Any], what: str
) -> None:
    assert stage.run(task, **words) == 2
    assert what in stage.screen
    assert "pass --yes or set HOSTWRIGHT_YES=1, since no terminal exists to ask on; nothing was changed" in stage.screen
    assert (stage.done, stage.looks) == ([], 0)
    assert stage.run(task, yes=True, **words) == 0
    assert len(stage.done) == 1 and stage.looks == 0
    stage.patch.setenv("HOSTWRIGHT_YES", "1")
    assert stage.run(task, **words) == 0
    assert len(stage.done) == 1


def test_a_rebuild_that_turns_out_to_reinstall_is_refused_before_anything_is_changed(stage: Stage) -> None:
    stage.decisions = {"gpu01": decision("repair", "relayer"), "gpu02": decision("power cycle", "reinstall")}
    assert stage.run(restore.rebuild) == 2
    assert "overwrites disks (gpu02)" in stage.screen
    assert stage.done == []
    stage.decisions["gpu02"] = decision("power cycle")
    assert stage.run(restore.rebuild) == 0


def test_a_terminal_is_asked_once_what_a_rebuild_does_beyond_repair(stage: Stage) -> None:
    stage.decisions = {"gpu01": decision("repair", "relayer"), "gpu02": decision("nothing")}
    stage.types("")
    assert stage.run(restore.rebuild) == 0
    assert "Type yes" not in stage.screen
    stage.decisions = {"gpu01": decision("relayer"), "gpu02": decision("power cycle", "reinstall")}
    stage.types("yes\n")
    assert stage.run(restore.rebuild) == 0
    assert stage.screen.count("Type yes to go on") == 1
    for said in (
        "removes all layers from gpu01",
        "power-cycles or reboots gpu02",
        "if that does not help, installs",
    ):
        assert said in stage.screen
    stage.types("no\n")
    assert stage.run(restore.rebuild) == 1
    assert "nothing was changed" in stage.screen
    assert stage.done == []


def test_provision_asks_only_where_it_reboots_disturbs_or_loses_something(stage: Stage) -> None:
    stage.types("yes\n")
    stage.plans = (planned(MOTD), planned(host="gpu02"))
    assert stage.run(change.provision) == 0
    assert "Type yes" not in stage.screen
    stage.plans = (planned(BOOT), planned(BOOT, host="gpu02"))
    stage.types("yes\n")
    assert stage.run(change.provision) == 0
    assert "reboots gpu[01-02] (2 hosts): the running kernel was removed Go on with 2 hosts?" in stage.screen
    assert stage.done == [("provision", True)]  # exactly these plans
    stage.types("no\n")
    assert stage.run(change.provision) == 1
    assert stage.done == []


def test_what_will_not_happen_is_not_asked(stage: Stage) -> None:
    stage.types("")
    stage.plans = (planned(BOOT, busy=("python",)), planned(BOOT, RULE, host="gpu02"))  # both are refused afterwards
    assert stage.run(change.provision) == 0
    stage.plans = (planned(BOOT),)
    assert stage.run(change.provision, no_reboot=True) == 0
    assert "Type yes" not in stage.screen
    assert stage.done == [("provision", True)]


def test_work_that_is_ended_by_force_and_what_is_lost_are_named(stage: Stage) -> None:
    users = tuple(f"python ({number})" for number in range(7))
    stage.plans = (replace(planned(LOST, busy=users), losses=("the driver 460.32.03",)),)
    stage.types("yes\n")
    assert stage.run(change.provision, force=True) == 0
    assert "kills work on gpu01: python (0), python (1), python (2), python (3), python (4), 2 more" in stage.screen
    assert "removes permanently from gpu01: the driver 460.32.03" in stage.screen
    assert stage.done == [("provision", True)]  # confirmed plans are not asked again


def test_a_host_cannot_put_another_ones_name_or_a_line_into_the_question(stage: Stage) -> None:
    stage.plans = (
        planned(
            Reboot("kernel", "a", "b", "{}\n  reboots nobody\x1b[2J"),
        ),
    )
    stage.types("no\n")
    stage.run(change.provision)
    assert "reboots gpu01: { } reboots nobody" in stage.screen
    assert "\x1b[2J" not in stage.screen


def test_remove_says_what_it_takes_from_whom(stage: Stage) -> None:
    stage.plans = (planned(MOTD), planned(host="gpu02"))
    stage.types("yes\n")
    assert stage.run(change.remove) == 0
    assert "removes driver from gpu01 Go on with 2 hosts?" in stage.screen
    stage.plans = (planned(), planned(host="gpu02"))
    stage.types("")
    assert stage.run(change.remove) == 0  # nothing to remove, nothing to confirm


@pytest.mark.parametrize(("order", "asked"), [("off", "powers off"), ("cycle", "power-cycles")])
def test_power_asks_before_hosts_are_off(stage: Stage, order: str, asked: str) -> None:
    stage.types("yes\n")
    assert stage.run(restore.power, order=order) == 0
    assert stage.screen.count(f"{asked} gpu[01-02] (2 hosts) Go on with 2 hosts?") == 1
    stage.types("no\n")
    assert stage.run(restore.power, order=order) == 1
    assert stage.done == []


@pytest.mark.parametrize("order", ["on", "status"])
def test_power_does_not_ask_where_nothing_is_disturbed(stage: Stage, order: str) -> None:
    for stdin in Terminal(""), io.StringIO():
        stage.patch.setattr("sys.stdin", stdin)
        assert stage.run(restore.power, order=order) == 0
        assert "Type yes" not in stage.screen


@pytest.mark.parametrize("answer", ["\n", "y\n", "no\n", "yes please\n"])
def test_only_the_whole_word_is_a_yes(stage: Stage, answer: str) -> None:
    stage.types(answer)
    assert stage.run(restore.power, **OFF) == 1
    assert stage.done == []


@pytest.mark.parametrize("task", [change.provision, change.remove, restore.rollback, restore.rebuild])
def test_who_looks_with_check_is_never_asked(stage: Stage, task: Any) -> None:
    stage.plans = (planned(BOOT),)
    stage.decisions = {"gpu01": decision("reinstall")}
    stage.patch.setattr("hostwright.fleet.Fleet.ways_back", lambda *_: Results((), ()))
    for typed in ("yes\n", None):
        stage.patch.setattr("sys.stdin", Terminal(typed) if typed else io.StringIO())
        assert stage.run(task, check=True) == 3
        assert "Type yes" not in stage.screen
        assert stage.done == []


@pytest.mark.parametrize("value", ["", "0", "no", "false", "2"])
def test_what_else_the_environment_says_is_no_yes(stage: Stage, value: str) -> None:
    stage.patch.setenv("HOSTWRIGHT_YES", value)
    assert stage.run(change.remove) == 2
    assert stage.done == []


def test_the_end_of_input_is_no_yes(stage: Stage) -> None:
    """Case: PyCQA/isort#1897"""
    stage.types("")
    assert stage.run(restore.power, **OFF) == 1
    assert "the answer was not yes: nothing was changed" in stage.screen


def test_ctrl_c_at_the_question_changes_nothing(stage: Stage) -> None:
    class Interrupted(Terminal):
        def readline(self, *_: Any) -> str:
            raise KeyboardInterrupt

    stage.patch.setattr("sys.stdin", Interrupted())
    assert stage.run(restore.power, **OFF) == 130
    assert "stopped at the prompt: nothing was changed" in stage.screen
    assert "keep running" not in stage.screen
    assert stage.done == []


def test_a_question_is_not_in_the_output_that_goes_into_a_file(stage: Stage) -> None:
    stage.types("yes\n")
    stage.capsys.readouterr()
    assert stage.run(restore.power, **OFF) == 0
    assert stage.capsys.readouterr().out == ""
    assert "Go on with 2 hosts?" in stage.screen


def test_who_wants_json_is_a_program_and_not_asked(stage: Stage) -> None:
    stage.types("yes\n")
    assert stage.run(change.remove, json=True) == 2
    assert "Type yes" not in stage.screen
    assert stage.done == []


def test_a_closed_input_is_no_terminal(stage: Stage) -> None:
    stage.patch.setattr("sys.stdin", None)
    assert stage.run(change.remove) == 2


def test_ctrl_c_before_the_question_changes_nothing_either(stage: Stage) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    stage.types("yes\n")
    stage.patch.setattr("hostwright.apply.rollout.consent.plan_each", interrupted)
    assert stage.run(change.provision) == 130
    assert "stopped; nothing was changed" in stage.screen
    assert stage.done == []
