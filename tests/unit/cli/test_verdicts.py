"""What ``invoke verify`` shows: what failed, and what could not be asked, are two things."""

from __future__ import annotations

import json

import pytest

from hostwright.apply.rollout.rollout import Results
from hostwright.cli.views.verdicts import show_verdicts
from hostwright.plan.model import Plan
from hostwright.plan.planning import HostPlan
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
    assert "? driver: 1 of 2 checks, 1 not checked  1.0 s" in lines
    assert lines[lines.index("The module is loaded. (not checked)") + 1] == "the connection was lost"
    assert "✗ container: 0 of 1 check  0.5 s" in lines


def test_json_tells_unasked_from_failed(capsys: pytest.CaptureFixture[str]) -> None:
    show_verdicts((), VERDICT, as_json=True)
    (host,) = json.loads(capsys.readouterr().out)["hosts"]
    assert (host["failed_roles"], host["unchecked_roles"], host["passed"]) == (["container"], ["driver"], False)
    assert [check["checked"] for check in host["checks"]] == [True, False, True]
