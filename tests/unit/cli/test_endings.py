"""The end of verbs: the last lines are the totals and the next command."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from hostwright.apply.commands.remote import RemoteCommand
from hostwright.apply.host.outcome import Outcome
from hostwright.apply.rollout.rollout import Results
from hostwright.apply.run import RunResults
from hostwright.cli.views.changing.outcomes import show_outcomes, show_plans
from hostwright.cli.views.inventory import _as_yaml
from hostwright.cli.views.reaching.commands import show_commands
from hostwright.cli.views.rebuilding.rebuilds import show_rebuilt
from hostwright.cli.views.shared import show_errors
from hostwright.cli.views.verdicts import show_verdicts
from hostwright.common.command import Command
from hostwright.common.errors import (
    ArtifactError,
    BecomeError,
    Examination,
    FailedStep,
    HostError,
    Locked,
    ProtocolError,
    Refused,
    SeveralFailed,
    StepFailed,
    Stopped,
    Unreachable,
)
from hostwright.common.secret import Secret
from hostwright.plan.model import Change, Plan, Reboot, Refusal, RolePlan, RoleResult, Step, StepResult
from hostwright.plan.planning import HostPlan
from hostwright.rebuild.run import Rebuilt
from hostwright.transport.identity.hostkeys import HostKeyMismatch
from hostwright.verify.verdict import Check, Verdict

CHANGE = Change("driver", "absent", "470", (Step("true"),), artifacts=("driver.run",), diff="-a\n+b\n")
WHEELS = ("torch.whl", "numpy.whl")
VENV = Change("venv", "absent", "torch", (Step("true"),), artifacts=WHEELS)
REBOOT = Reboot("kernel", "5.4", "5.15", "a new kernel")
GONE = replace(CHANGE, what="home", artifacts=())
BUSY, REFUSED = ("python3 (7)",), Refusal("room", "1 GB", "9 GB", "room", "too little room")


def target(name: str, *, direct: bool = False) -> Any:
    """Return a host of the lab's stack with two layers."""
    urls = ("https://vendor.example/driver.run",)
    artifacts = {"driver.run": SimpleNamespace(size=2_050_000_000, urls=urls, file="driver.run")}
    artifacts |= {wheel: SimpleNamespace(size=None, urls=(), file=wheel) for wheel in WHEELS}
    return SimpleNamespace(
        name=name,
        host={"hostwright_bmc": "https://bmc.example"} | ({"artifacts": "direct"} if direct else {}),
        desired=SimpleNamespace(stack=SimpleNamespace(artifacts=artifacts)),
        roles=(SimpleNamespace(name="base"), SimpleNamespace(name="driver")),
        stand_ins=("driver.run", f"cudnn-of-{name}.tgz"),
    )


def looked_at(error: HostError) -> HostError:
    """Return an error of a host that was checked for known problems."""
    error.examination = Examination((), "no known problem on the host")
    return error


def planned(host: str, *changes: Any, layers: Iterable[str] = ("driver",), busy: tuple[str, ...] = ()) -> HostPlan:
    return HostPlan(Plan(host, "lab", tuple(RolePlan(layer, (), changes) for layer in layers if changes)), busy)


LOSING = replace(planned("a", GONE, busy=BUSY), losses=("ada's files",))


def ended(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line for line in capsys.readouterr().out.splitlines() if line.strip()]


def told(capsys: pytest.CaptureFixture[str], *plans: HostPlan, errors: tuple[HostError, ...] = (), **how: Any) -> Any:
    names = [*(plan.host for plan in plans), *(error.host for error in errors)]
    targets = [target(name, direct=name == "direct") for name in names]
    show_plans(targets, Results(plans, errors), then=Command("provision"), as_json=False, **how)
    return ended(capsys)


@pytest.mark.parametrize(
    ("plans", "errors", "last", "then"),
    [
        ([planned("a"), planned("b")], (), "2 hosts: as desired, nothing to do", ""),
        ([planned("a", CHANGE)], (), "1 host: 1 change in 1 layer, no reboot, up to 2.0 GB to send", " --hosts a"),
        (
            [planned("a", CHANGE, REBOOT, layers=("base", "driver")), planned("b", CHANGE), planned("c")],
            (Unreachable("d", "no route"),),
            "4 hosts: 1 as desired, 2 with 5 changes in 2 layers, 1 host to reboot, up to 4.1 GB to send, "
            "1 not planned, see above",
            " --hosts a,b",
        ),
        (
            [
                replace(planned("a", GONE, busy=BUSY), losses=("ada's files",)),
                planned("b", REFUSED, layers=("preflight",)),
            ],
            (),
            "2 hosts: 1 with 1 change in 1 layer, no reboot, 1 in use, 1 refused, ada's files deleted permanently",
            " --hosts a --drain",
        ),
        ([planned("direct", CHANGE)], (), "1 host: 1 change in 1 layer, no reboot", " --hosts direct"),
        (
            [planned("a", CHANGE, VENV), planned("b", VENV)],
            (),
            "2 hosts: 3 changes in 1 layer, no reboot, up to 2.0 GB and 2 files of unknown size to send",
            " --hosts a,b",
        ),
        (
            [planned("a", VENV)],
            (),
            "1 host: 1 change in 1 layer, no reboot, 2 files of unknown size to send",
            " --hosts a",
        ),
    ],
)
def test_a_plan_ends_with_what_it_comes_to(
    capsys: pytest.CaptureFixture[str], plans: list[HostPlan], errors: Any, last: str, then: str
) -> None:
    lines = told(capsys, *plans, errors=errors)
    wanted = [last, f"next: invoke provision{then}"] if then else [last]
    assert lines[-len(wanted) :] == wanted


def test_a_saved_plan_is_what_is_provisioned_next(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        told(capsys, planned("a", CHANGE), saved="my plan")[-1] == "next: invoke provision --hosts a --plan 'my plan'"
    )


def test_a_summary_names_what_changes_and_shows_no_values(capsys: pytest.CaptureFixture[str]) -> None:
    others = [planned(f"gpu0{number}", replace(CHANGE, have=f"46{number}"), GONE) for number in range(3)]
    lines = told(capsys, *others, brief=True)
    assert lines[:3] == [
        "gpu[00-02] (3 hosts)  2 changes to lab",
        "  driver  2 changes: driver, home",
        "lab stack: 4 stand-in files, not the vendor's own: see docs/lab.md",
    ], "hosts that differ in values alone are one"


def test_the_next_command_names_many_hosts_as_the_call_did(capsys: pytest.CaptureFixture[str]) -> None:
    plans = tuple(planned(f"{letter * 9}{letter}", CHANGE) for letter in "abcdefgh")
    targets: Any = type("Targets", (list,), {"pattern": "@rack 3"})(map(target, (plan.host for plan in plans)))
    show_plans(targets, Results(plans, ()), then=Command("remove"), as_json=False)
    assert ended(capsys)[-1] == "next: invoke remove --hosts '@rack 3'"


def test_the_next_command_of_many_hosts_says_which_of_the_call_it_leaves_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = [f"node{number:03}" for number in range(1, 200, 3)]
    plans = tuple(planned(name, *([CHANGE] if name > "node100" else [])) for name in names)
    silent = tuple(Unreachable(name, "no route", passing=True) for name in ("node002", "node005", "login"))
    targets: Any = type("Targets", (list,), {"pattern": "@rack 3"})(
        map(target, [*names, *(error.host for error in silent)])
    )
    show_plans(targets, Results(plans, silent), then=Command("provision"), as_json=False)
    assert ended(capsys)[-2:] == [
        "next: invoke provision --hosts '@rack 3,!login,!node[002,005]'",
        "next: invoke rebuild --hosts 'login,node[002,005]' --check",
    ]


def test_many_hosts_with_the_same_error_share_a_line_and_few_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    many = [Unreachable(f"gpu{number:02}", "no route") for number in range(1, 7)]
    few = [HostError(name, "no sudo") for name in ("a", "b", "c")]
    show_errors((few[0], *many, *few[1:], Stopped("x", "stopped"), Stopped("y", "stopped")))
    assert capsys.readouterr().err.splitlines() == [
        *("x,y: stopped", "a: no sudo", "b: no sudo", "c: no sudo"),
        "gpu[01-06]: no route",
    ]


def test_many_hosts_on_which_the_same_step_failed_share_its_output(capsys: pytest.CaptureFixture[str]) -> None:
    step = FailedStep("driver", "module", "dkms", 10, ("Bad return status",))
    errors = [StepFailed(f"gpu{number:02}", "it failed", step) for number in range(1, 7)]
    other = StepFailed("gpu07", "it failed", replace(step, tail=("no space left",)))
    show_errors((*errors, other))
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == ["gpu[01-06]: it failed", "gpu07: it failed"]
    assert [line.strip() for line in lines if "│" in line] == ["│ Bad return status", "│ no space left"]
    assert [error.host for error in errors] == [f"gpu{number:02}" for number in range(1, 7)], "they stay as they were"


def test_files_that_are_stand_ins_are_said_once_where_proofs_follow(capsys: pytest.CaptureFixture[str]) -> None:
    results = Results((Verdict(planned("a"), ()),), ())
    show_verdicts([target("a")], results, as_json=False)
    alone = ended(capsys)
    show_verdicts([target("a")], results, then_proofs=True, as_json=False)
    assert (["stand-in" in line for line in alone].count(True), "stand-in" in "".join(ended(capsys))) == (1, False)


def outcome(host: str, seconds: float) -> Outcome:
    plan = planned(host, CHANGE).plan
    return Outcome(
        host, plan, (RoleResult("driver", 0, seconds, (StepResult(0, "x", 0, seconds),)),), Plan(host, "lab")
    )


def test_a_run_ends_with_sums_the_time_in_all_and_what_to_do_about_what_failed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    errors = (HostError("c", "disk full"), Locked("d", "locked by ada"), Unreachable("e", "no route"))
    results = Results((outcome("a", 3.0), outcome("b", 70.0)), errors, ("f",))
    show_outcomes("provision", [*map(target, "abcdef")], RunResults("run1", results, 1), took_s=372.0, as_json=False)
    lines = ended(capsys)
    assert lines[-4:] == [
        "lab stack: 5 stand-in files, not the vendor's own: see docs/lab.md",
        "6 hosts in 6 min 12 s: 2 changed, 1 failed, 1 locked, 1 unreachable, 1 untouched",
        "every step: invoke runs.show --run run1 --details",
        "next: invoke doctor --hosts c",
    ], "the stand-ins are those of hosts that were reached"
    assert "driver 2 2 1 min 10 s" in [" ".join(line.split()) for line in lines], "each layer once"


@pytest.mark.parametrize(
    ("error", "then"),
    [
        (Unreachable("c", "no answer", passing=True), "rebuild --hosts c --check"),
        (Unreachable("c", "the login was refused"), ""),
        (Unreachable("c", "its jump host: no answer", passing=True, lead=""), ""),
        (Unreachable("c", "its key is not known", lead="trust"), "trust --hosts c"),
        (HostKeyMismatch("c", "its key changed", lead="trust"), "trust --hosts c"),
        (HostKeyMismatch("c", "its jump host: its key changed"), ""),
        (BecomeError("c", "sudo wants a password", lead="--ask-become-pass"), "VERB --hosts c --ask-become-pass"),
        (BecomeError("c", "sudo is not installed there"), ""),
        (Locked("c", "locked by ada"), ""),
        (Refused("c", "too little disk"), ""),
        (Stopped("c", "stopped"), ""),
        (ProtocolError("c", "its output was cut off"), ""),
        (HostError("c", "disk full"), "doctor --hosts c"),
        (SeveralFailed("c", [ArtifactError("run invoke mirror")]), "mirror"),
        (looked_at(HostError("c", "disk full")), ""),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("verb", ["plan", "provision", "remove", "rollback", "verify", "run", "rebuild"])
def test_the_next_command_follows_from_the_cause(
    capsys: pytest.CaptureFixture[str], error: HostError, then: str, verb: str
) -> None:
    results: Any = Results((), (error,))
    run = RunResults("run1", results, 1)
    match verb:
        case "plan":
            show_plans([target("c")], results, then=Command("provision"), as_json=False)
        case "verify":
            show_verdicts([target("c")], results, as_json=False)
        case "run":
            show_commands(RemoteCommand(("lsmod",), root=True), run, [target("c")], as_json=False)
        case "rebuild":
            show_rebuilt([target("c")], Rebuilt("run1", {}, results, (error,), 1), as_json=False)
        case _:
            show_outcomes(verb, [target("c")], run, as_json=False)
    shown = [line.removeprefix("next: invoke ") for line in ended(capsys) if line.startswith("next:")]
    wanted = then.replace("VERB", verb)
    if verb == "run" and then.startswith("VERB"):
        wanted = wanted.replace(" --hosts c", " --hosts c --root") + " -- lsmod"
    if then.startswith(f"{verb} "):
        wanted = ""  # a rebuild that did not reach its host reports why itself
    assert shown == ([wanted] if wanted else [])


def test_a_silent_host_without_a_bmc_leads_to_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    bare = target("c")
    bare.host = {}
    results: Any = Results((), (Unreachable("c", "no answer", passing=True),))
    show_plans([bare], results, then=Command("provision"), as_json=False)
    assert "next:" not in capsys.readouterr().out


def test_a_check_that_failed_leads_on_where_the_plan_differs_and_to_the_doctor_where_nobody_looked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def then(verdict: Verdict) -> list[str]:
        show_verdicts([target("a")], Results((verdict,), ()), as_json=False)
        return [line for line in ended(capsys) if line.startswith("next:")]

    failed = verdict("a", passed=False)
    assert then(failed) == ["next: invoke doctor --hosts a"]
    assert then(replace(failed, examination=Examination((), "no known problem on the host"))) == []
    differing = verdict("a", passed=False, layers=("driver",))
    assert then(differing) == ["next: invoke provision --hosts a"]


def test_locked_hosts_do_not_keep_the_others_from_being_verified(capsys: pytest.CaptureFixture[str]) -> None:
    run = RunResults("run1", Results((outcome("a", 3.0),), (Locked("b", "locked by ada"),)), 3)
    show_outcomes("provision", [target("a"), target("b")], run, as_json=False)
    assert ended(capsys)[-1] == "next: invoke verify --hosts a"


def test_a_run_in_which_all_went_well_is_followed_by_verify(capsys: pytest.CaptureFixture[str]) -> None:
    run = RunResults("run1", Results((outcome("a", 3.0),), ()), 0)
    show_outcomes("provision", [target("a")], run, took_s=3.04, as_json=False)
    assert ended(capsys)[-3:] == [
        "1 host in 3.0 s: 1 changed",
        "every step: invoke runs.show --run run1 --details",
        "next: invoke verify --hosts a",
    ]


def verdict(host: str, *, passed: bool = True, layers: Iterable[str] = (), provisioned: bool = True) -> Verdict:
    why = "" if passed else "it is off"
    checks = tuple(Check(role, "test_x", "It runs.", passed, 0.5, why) for role in ("base", "driver"))
    plan = planned(host, CHANGE, layers=layers) if layers else planned(host)
    return Verdict(replace(plan, provisioned=provisioned), checks, took_s=1.0)


def test_verify_ends_with_its_verdict_and_folds_what_passed(capsys: pytest.CaptureFixture[str]) -> None:
    verdicts = (
        verdict("bad", passed=False), *(verdict(f"gpu{number:03}") for number in range(1, 300)),
        *(verdict(name, passed=False, layers=("base", "driver"), provisioned=False) for name in ("new1", "new2")),
    )  # fmt: skip
    results = Results(verdicts, (Unreachable("off", "no route", passing=True),))
    targets = [*map(target, (each.host for each in verdicts)), target("off")]
    show_verdicts(targets, results, took_s=200.0, as_json=False)
    lines = ended(capsys)
    assert lines[0] == "gpu[001-299] (299 hosts)  passed: 2 checks in 2 layers  1.0 s"
    assert "new[1-2] (2 hosts)  no layer is as desired: 2 changes (--details shows them)" in lines
    assert lines[-4:] == [
        "303 hosts in 3 min 20 s: 299 passed, 1 failed, 2 without any layer as desired, 1 unreachable",
        "next: invoke doctor --hosts bad",
        "next: invoke rebuild --hosts off --check",
        "next: invoke provision --hosts 'new[1-2]'",
    ]
    assert len(lines) < 20


def test_verify_shows_all_that_differs_on_a_host_that_was_provisioned(capsys: pytest.CaptureFixture[str]) -> None:
    flushed = verdict("gpu01", passed=False, layers=("base", "driver"))
    show_verdicts([target("gpu01")], Results((flushed,), ()), as_json=False)
    assert sum("~ driver: absent → 470" in line for line in ended(capsys)) == 2


def test_verify_shows_all_with_details(capsys: pytest.CaptureFixture[str]) -> None:
    verdicts = (
        verdict("gpu01"),
        verdict("gpu02"),
        verdict("new", passed=False, layers=("base", "driver"), provisioned=False),
    )
    show_verdicts([*map(target, ("gpu01", "gpu02", "new"))], Results(verdicts, ()), details=True, as_json=False)
    lines = ended(capsys)
    assert sum("✓ driver: 1 of 1 check passed  0.5 s" in line for line in lines) == 2
    assert any("~ driver: absent → 470" in line for line in lines)


@pytest.mark.parametrize(
    "value",
    [
        *("08", "no", "yes", "off", "On", "0o777", ".inf", "1e3", "~", "null"),
        *(
            "0755",
            "12:30",
            "01:02:03",
            "1:30:00",
            "a: b",
            "a # b",
            "{{ x }}",
            "*x",
            "!x",
            "@x",
            "two\nlines\n",
            " ends ",
            "é",
        ),
        *(True, 1, 0.5, "", ("443", "[::]:443"), {"ada": {"uid": 2001}}, None),
    ],
)
def test_a_variable_is_shown_as_it_can_be_pasted_back(value: Any) -> None:
    assert yaml.safe_load(_as_yaml("proxy_x", value)) == {"proxy_x": [*value] if isinstance(value, tuple) else value}


def test_variables_can_be_pasted_below_each_other() -> None:
    values = {"a": True, "b": 3, "c": "plain", "d": "022", "e": None, "f": ("x", "y"), "g": {"h": 1}, "i": ""}
    lines = [_as_yaml(name, value) for name, value in values.items()]
    assert yaml.safe_load("\n".join(lines)) == values | {"f": ["x", "y"]}


def test_a_secret_variable_is_a_comment() -> None:
    assert yaml.safe_load(_as_yaml("proxy_token", Secret("hunter2"))) is None
    assert "hunter2" not in _as_yaml("proxy_token", {"deep": Secret("hunter2")})


AWAY = Change("link /x", "there", "as before: absent", (Step("true"),))


def test_what_is_taken_away_is_counted_as_removals(capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(capsys, planned("a", AWAY, AWAY), planned("b", AWAY, CHANGE))
    assert "a  2 removals of lab" in lines and "b  1 change, 1 removal to lab" in lines
    assert "2 hosts: 1 change, 3 removals in 1 layer, no reboot, up to 2.0 GB to send" in lines


def test_a_run_that_removes_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    done = Outcome("a", Plan("a", "lab"), (RoleResult("driver", 0, 1.0, (StepResult(0, "x", 0, 1.0),)),))
    show_outcomes("remove", [target("a")], RunResults("run1", Results((done,), ()), 0), as_json=False)
    lines = ended(capsys)
    assert "a     layers removed, 1 step" in lines and any(line.endswith("s: 1 with layers removed") for line in lines)


def test_a_summary_tells_why_a_host_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(capsys, planned("b", REFUSED, layers=("preflight",)), brief=True)
    assert lines[:3] == ["b  1 refusal", "  preflight  1 refusal: room", "      refused: too little room"]
    assert lines[-1] == "1 host: 1 refused"
