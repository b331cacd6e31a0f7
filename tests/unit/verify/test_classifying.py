"""Tests that the output of a failed check's commands identifies the known problem: programs print public error texts.

The checks run in verify's own pytest over a session on this machine; only SSH is omitted.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hostwright.apply.rollout.rollout import Results
from hostwright.cli.views.verdicts import show_verdicts
from hostwright.common.errors import Examination
from hostwright.fleet import Fleet
from hostwright.plan.model import Plan
from hostwright.plan.planning import HostPlan
from hostwright.plan.roles.site import Site
from hostwright.verify.checking import Checks
from hostwright.verify.verdict import Check, Verdict
from tests.unit.support.failed import FOLDER
from tests.unit.support.known import KNOWN
from tests.unit.verify.test_checking import ROLE

CASES: list[dict[str, Any]] = [json.loads(line) for line in (FOLDER / "checks.jsonl").read_text().splitlines()]

CHECKS = """\
from pathlib import Path

import pytest

from hostwright.transport.root.rootshell import RootShell
from tests.unit.verify.test_backend import Here

FOLDER = Path({folder!r})


@pytest.fixture(scope="session")
def shell():
    return RootShell(Here(FOLDER))


@pytest.fixture(scope="module")
def looked(host):
    return host.run("warns")


@pytest.mark.parametrize(("number", "program"), {programs!r})
def test_it(host, number, program):
    done = host.run(f"PATH=%s:$PATH; {{program}} --all", str(FOLDER / str(number)))
    pytest.fail(f"it does not work: {{done.rc}}")


def test_a_fixture_warns(looked):
    assert looked.rc != 0, "no card"


def test_the_same_fixture_again(looked):
    assert looked.rc == 0


def test_it_speaks_of_what_it_asked(host):
    host.run("talks")
    pytest.fail("nothing to see")


def test_the_first_line_decides(host):
    assert host.run("endless").rc == 0, "it failed"


def test_only_its_assertion_tells(host):
    pytest.fail("libcudart.so.11.0: cannot open shared object file: No such file or directory")
"""

#: Printed on standard error by a successful program, as TensorFlow does; on standard output of a success, it is no
#: failure.
PROGRAMS = {
    "warns": "echo \"W dso_loader.cc:64] Could not load dynamic library 'libcublas.so.11'; dlerror: libcublas.so.11: "
    'cannot open shared object file: No such file or directory" >&2',
    "talks": "echo 'E: You have held broken packages: no space left on device'",
    "endless": "echo 'make: write: No space left on device' >&2; yes 'and so on' | head -c 700000 >&2; exit 2",
}


def put(path: Path, script: str) -> None:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Check]:
    """The results of all checks of one host, by name."""
    folder = tmp_path_factory.mktemp("programs")
    for number, case in enumerate(CASES):
        (folder / f"{number}.text").write_text(case["text"])
        to = ">&2" if case["stream"] == "stderr" else ""
        put(folder / str(number) / case["program"], f"cat {folder}/{number}.text {to}\nexit {case['status']}")
    for name, script in PROGRAMS.items():
        put(folder / name, script)
    root = tmp_path_factory.mktemp("site")
    programs = [(number, case["program"]) for number, case in enumerate(CASES)]
    for name, text in {
        "inventory/hosts.yml": "all: {hosts: {gpu01: {hostwright_roles: [motd]}}}\n",
        "tasks.py": "",
        "roles/motd/__init__.py": ROLE.format(name="motd"),
        "tests/layers/test_motd.py": CHECKS.format(folder=str(folder), programs=programs),
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    fleet = Fleet.load(site=Site(root))
    (target,) = fleet.targets("gpu01")
    with Checks(fleet, target.roles) as running:
        return {check.check: check for check in running.of(target, None)}


def rule_of(check: Check) -> str | None:
    return check.finding.rule if check.finding else None


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case["source"] for case in CASES])
def test_public_outputs_of_programs_that_checks_call_are_named(checks: dict[str, Check], number: int) -> None:
    case = CASES[number]
    check = checks[f"test_it[{number}-{case['program']}]"]
    assert check.why.endswith(f": {case['status']}"), "the program ended as it did there"
    unnamed = [None] if case.get("open") or not case["rules"] else []
    assert rule_of(check) in [*case["rules"], *unnamed], "what no rule knows yet is not called another"


def test_what_a_fixture_printed_names_the_problem_of_each_check_that_uses_it(checks: dict[str, Check]) -> None:
    assert rule_of(checks["test_a_fixture_warns"]) == "library-not-found"
    assert checks["test_the_same_fixture_again"].passed
    assert rule_of(checks["test_the_same_fixture_again"]) is None, "a check that passes has no problem"


def test_what_a_command_that_succeeded_answered_is_no_failure(checks: dict[str, Check]) -> None:
    assert rule_of(checks["test_it_speaks_of_what_it_asked"]) is None


def test_of_a_long_output_the_first_error_counts_too(checks: dict[str, Check]) -> None:
    assert rule_of(checks["test_the_first_line_decides"]) == "no-space"


def test_the_sentence_of_an_assertion_counts(checks: dict[str, Check]) -> None:
    check = checks["test_only_its_assertion_tells"]
    assert rule_of(check) == "library-not-found"
    assert check.finding is not None
    assert check.finding.evidence == ("libcudart.so.11.0: cannot open shared object file: No such file or directory",)


def test_the_operator_reads_cause_and_cure_below_the_check(
    checks: dict[str, Check], capsys: pytest.CaptureFixture[str]
) -> None:
    """On the console and as JSON."""
    check = checks["test_the_first_line_decides"]
    plan = HostPlan(Plan("gpu01", "tf"))
    results = Results((Verdict(plan, (check,)),), ())
    show_verdicts((), results, as_json=False)
    shown = " ".join(capsys.readouterr().out.split())
    assert "│ make: write: No space left on device a filesystem is full. Free space" in shown
    show_verdicts((), results, as_json=True)
    (host,) = json.loads(capsys.readouterr().out)["hosts"]
    finding = host["checks"][0]["finding"]
    assert (finding["rule"], finding["link"]) == ("no-space", "hostwright doctor --explain no-space")
    assert finding["evidence"] == ["make: write: No space left on device"]


def test_what_the_host_was_found_to_have_is_said_with_the_failure(capsys: pytest.CaptureFixture[str]) -> None:
    """With cause and fix; without a known problem, with the number of signs."""
    known = KNOWN.explained("NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.")
    assert known is not None
    for findings, sentence in (
        ((known,), "1 known problem found on the host (9 signs searched for)"),
        ((), "no known problem"),
    ):
        verdict = Verdict(HostPlan(Plan("gpu01", "tf")), (), Examination(findings, sentence))
        show_verdicts((), Results((verdict,), ()), as_json=False)
        shown = " ".join(capsys.readouterr().out.split())
        assert f"checks after the failure: {sentence}" in shown
        assert (known.cure in shown) is bool(findings)
