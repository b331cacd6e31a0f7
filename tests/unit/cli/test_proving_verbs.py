"""``--prove`` of the verbs: its levels, and that ``verify`` ends with the worse of two exit statuses."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hostwright.apply.rollout.rollout import Results
from hostwright.cli.tasks.look import verify
from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.prove.proving import ProveOptions
from tests.unit.support.proofs import fleet as proofs_of_a_run
from tests.unit.support.proofs import host, result, ticks

REQUEST = Request("gpu01", json=True)


def test_a_level_is_quick_or_full() -> None:
    assert [Request(prove=level).prove for level in ("", "quick", "full")] == ["", "quick", "full"]
    with pytest.raises(InputError, match="--prove: found 'fast', expected quick or full"):
        Request(prove="fast")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Return the requests to a fleet whose verification ends with the first status, and whose proofs end with the
    second."""
    asked: list[tuple[str, Any]] = []
    statuses = [1, 3]

    class Fleet:
        def verify(self, _targets: Any, **_: Any) -> Any:
            asked.append(("verify", None))
            return SimpleNamespace(results=Results((), ()), status=statuses[0])

        def prove(self, _targets: Any, options: ProveOptions, **_: Any) -> Any:
            asked.append(("prove", options))
            fleet = proofs_of_a_run(host("gpu01", result(ticks(2.5))))
            return SimpleNamespace(fleet=fleet, status=statuses[1])

    monkeypatch.setattr("hostwright.cli.opening.open_fleet", lambda *_: Fleet())
    monkeypatch.setattr("hostwright.cli.opening.targets_of", lambda *_: ())
    monkeypatch.setattr("hostwright.prove.proving.check_names", lambda *_: None)
    return asked


def test_hosts_are_verified_and_then_proved(asked: list[tuple[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(replace(REQUEST, prove="quick")) == 1
    assert asked == [("verify", None), ("prove", ProveOptions("quick"))]
    told = json.loads(capsys.readouterr().out)
    assert (told["hosts"], told["proofs"]["hosts"][0]["status"]) == ([], "passed")


def test_without_a_level_hosts_are_verified_alone(
    asked: list[tuple[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify(REQUEST) == 1
    assert asked == [("verify", None)]
    told = json.loads(capsys.readouterr().out)
    assert (told["hosts"], "proofs" in told) == ([], False)
