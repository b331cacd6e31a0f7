"""The output of ``invoke verify``: failed checks and skipped checks are different."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console, Group
from rich.text import Text

from hostwright.apply.rollout.rollout import Results
from hostwright.cli.console import Listed, make_console, with_sums
from hostwright.cli.views.verdicts import conclude, show_verdicts
from hostwright.common.errors import Examination, Finding
from hostwright.plan.model import Change, Plan, RolePlan, Step
from hostwright.plan.planning import HostPlan
from hostwright.verify.causes import causes
from hostwright.verify.verdict import Check, Verdict

CHECKS = (
    Check("driver", "test_cards", "Every card answers.", True, 0.5, ""),
    Check("driver", "test_module", "The module is loaded.", False, 0.5, "the connection was lost", checked=False),
    Check("container", "test_daemon", "Docker runs.", False, 0.5, "docker.service is inactive"),
)
VERDICT = Results((Verdict(HostPlan(Plan("gpu01", "house", ())), CHECKS),), ())


def test_an_unasked_check_is_shown_as_not_checked(capsys: pytest.CaptureFixture[str]) -> None:
    show_verdicts((), VERDICT, as_json=False)
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "? driver: 1 of 2 checks passed, 1 not checked  1.0 s" in lines
    assert lines[lines.index("The module is loaded. (not checked)") + 1] == "the connection was lost"
    assert "✗ container: 0 of 1 check passed  0.5 s" in lines


def test_json_tells_unasked_from_failed(capsys: pytest.CaptureFixture[str]) -> None:
    show_verdicts((), VERDICT, as_json=True)
    (host,) = json.loads(capsys.readouterr().out)["hosts"]
    assert (host["failed_roles"], host["unchecked_roles"], host["passed"]) == (["container"], ["driver"], False)
    assert [check["checked"] for check in host["checks"]] == [True, False, True]


def failing(host: str, why: str = "it is off") -> Verdict:
    checks = (replace(CHECKS[0], duration_s=float(host[-1])), replace(CHECKS[2], why=why))
    plan = Plan(host, "house", (RolePlan("cuda", (), (Change("link", "absent", "there", (Step("true"),)),)),))
    return Verdict(HostPlan(plan), checks)


def test_hosts_that_failed_alike_are_shown_once_with_what_is_right_in_a_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    verdicts = (failing("gpu01"), failing("gpu02"), failing("gpu03", "no socket"))
    show_verdicts((), Results(verdicts, ()), took_s=61.0, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == [
        *("gpu[01-02] (2 hosts)  failed: cuda, container", "gpu[01-02] (2 hosts)  1 change to house"),
        *("gpu03  failed: cuda, container", "gpu03  1 change to house"),
        *("3 hosts in 1 min 01 s: 3 failed", "next: invoke provision --hosts 'gpu[01-03]'"),
    ]
    assert lines[1:6] == [
        "  ✗ container: 0 of 1 check passed  0.5 s",
        "      Docker runs.",
        "        it is off",
        "  ✗ cuda: differs from the stack",
        "  ✓ driver: 1 check  1.0 s",
    ]


def test_with_details_each_host_and_layer_stands_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    show_verdicts((), Results((failing("gpu01"), failing("gpu02")), ()), details=True, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    passed = "  ✓ driver: 1 of 1 check passed  {} s"
    assert [line for line in lines if "✓" in line] == [passed.format("1.0"), passed.format("2.0")]


def test_what_was_verified_is_said_once_more_below_the_proofs(capsys: pytest.CaptureFixture[str]) -> None:
    conclude((), VERDICT, "checks of ", took_s=5.0)
    assert capsys.readouterr().out.splitlines() == [
        "checks of 1 host in 5.0 s: 1 failed",
        "next: invoke doctor --hosts gpu01",
    ]


def test_hosts_that_only_differ_are_provisioned_next(capsys: pytest.CaptureFixture[str]) -> None:
    verdicts = (replace(failing("gpu01"), checks=()), failing("gpu02"))
    show_verdicts((), Results(verdicts, ()), as_json=False)
    assert capsys.readouterr().out.splitlines()[-1] == "next: invoke provision --hosts 'gpu[01-02]'"


@pytest.mark.parametrize("width", [22, 30, 40])
def test_numbers_stay_with_what_they_count(width: int) -> None:
    out = Console(file=io.StringIO(), width=width)
    told = Listed("300 hosts in 4.1 s: 195 drifted, 5 could not be read, 94 as desired")
    out.print(with_sums(Group(Text("x"), told)))
    lines = [line.strip() for line in out.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert [part for part in ("195 drifted", "94 as desired") if not any(part in line for line in lines)] == []
    assert any("5 could not be read" in line for line in lines) or width < 25


def problem(rule: str, layer: str, *evidence: str) -> Finding:
    more = f"hostwright doctor --explain {rule}"
    return Finding(rule, layer, True, evidence, f"{rule} is why", f"Fix {rule}", True, more)


STOPPED = problem("docker-stopped", "container", "docker.service is inactive (dead)")
DAMAGED = problem("environment-damaged", "tensorflow", "numpy 1.26.4 changed")
NUMPY = "TensorFlow does not run: no attribute 'integer'"


def failed(role: str, name: str, why: str, finding: Finding | None = None) -> Check:
    return Check(role, name, f"{name} works.", False, 0.5, why, finding=finding)


def damaged() -> Verdict:
    """Return two causes: one found on the host and named by three checks, and one only found on the host."""
    named = problem("docker-stopped", "container", "Cannot connect to the Docker daemon")
    checks = [failed("container", f"docker {number}", f"no daemon {number}", named) for number in range(3)]
    checks += [failed("tensorflow", f"import {number}", NUMPY) for number in range(6)]
    checks += [failed("cuda", f"link {number}", "lib64 leads to nothing") for number in range(2)]
    looked = Examination((STOPPED, DAMAGED), "2 known problems on the host")
    change = Change("file /etc/x", "absent", "644", (Step("true"),), diff="+one\n+two")
    plan = Plan("gpu01", "house", (RolePlan("cuda", (), (change,)),))
    return Verdict(HostPlan(plan), tuple(checks), looked)


def test_each_cause_is_shown_once_with_the_checks_that_it_explains(capsys: pytest.CaptureFixture[str]) -> None:
    show_verdicts((), Results((damaged(),), ()), as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "✗" in line or "explains" in line] == [
        "  ✗ container: 0 of 3 checks passed  1.5 s",
        "  ✗ tensorflow: 0 of 6 checks passed  3.0 s",
        "  ✗ cuda: differs from the stack, 0 of 2 checks passed  1.0 s",
        "  ✗ docker-stopped  container  explains 3 failed checks: 3 of container",
        "  ✗ environment-damaged  tensorflow  probably explains 6 failed checks: 6 of tensorflow",
    ]
    text = "\n".join(lines)
    assert text.count("docker-stopped is why.") == text.count("Fix docker-stopped.") == text.count(NUMPY) == 1
    assert "docker.service is inactive" in text and "Cannot connect" not in text
    assert "      link 0 works. And 1 more check:\n        lib64 leads to nothing\n" in text
    assert "~ file /etc/x: absent → 644" in text and "+one" not in text


def test_with_details_every_failed_check_and_diff_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    show_verdicts((), Results((damaged(),), ()), details=True, as_json=False)
    text = capsys.readouterr().out
    assert [text.count(check.sentence) for check in damaged().checks] == [1] * 11
    assert "no daemon 2" in text and "+one" in text


def test_a_message_of_a_problem_that_the_host_does_not_have_is_explained_by_the_one_that_it_has() -> None:
    """nvidia-smi with another library reports that no driver is loaded."""
    named = failed("driver", "smi", "couldn't communicate", problem("module-missing", "driver"))
    found = problem("driver-library-shadowed", "driver")

    def of(looked: Examination) -> list[tuple[str, bool]]:
        verdict = Verdict(HostPlan(Plan("gpu01", "house")), (named,), looked)
        return [(cause.finding.rule, cause.probably) for cause in causes(verdict) if cause.checks]

    assert of(Examination((found,), "")) == [("driver-library-shadowed", True)]
    assert of(Examination((found,), "", not_checked=("module-missing",))) == [("module-missing", False)]
    assert of(Examination((found, problem("other", "driver")), "")) == [("module-missing", False)]
    assert of(Examination((), "")) == [("module-missing", False)]


def test_two_known_problems_of_a_layer_explain_no_check_that_names_neither() -> None:
    both = Examination((DAMAGED, problem("other", "tensorflow")), "")
    verdict = replace(damaged(), examination=both)
    assert [(cause.finding.rule, len(cause.checks)) for cause in causes(verdict)] == [
        ("environment-damaged", 0),
        ("other", 0),
        ("docker-stopped", 3),
    ]


def test_a_check_that_was_not_made_is_not_explained_by_what_the_host_has() -> None:
    unchecked = tuple(replace(check, checked=False) for check in damaged().checks if check.role == "tensorflow")
    assert [cause.checks for cause in causes(replace(damaged(), checks=unchecked))] == [(), ()]


def test_what_a_program_printed_never_begins_a_line_of_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stdout", stream)
    out = make_console()
    out.width = 30
    out.print(Text("      │ word word word word gpu02 as desired"))
    first, *further = stream.getvalue().splitlines()
    assert first.startswith("      │ ") and further and all(line.startswith(" " * 8) for line in further)
