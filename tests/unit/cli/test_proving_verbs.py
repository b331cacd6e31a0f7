"""``--prove`` of the verbs: which levels there are, and that ``verify`` ends with the worse of two exit statuses."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from hostwright.apply.rollout.rollout import Results
from hostwright.cli.arguments import ConnectionOptions, Selection
from hostwright.cli.opening import level_of
from hostwright.cli.verbs import changes, rebuild, verify
from hostwright.common.errors import InputError
from hostwright.prove.proving import ProveOptions
from tests.unit.support.proofs import fleet as proofs_of_a_run
from tests.unit.support.proofs import host, result, ticks

SELECTION, CONNECTION = Selection("gpu01"), ConnectionOptions()


def test_a_level_is_quick_or_full() -> None:
    assert [level_of(text) for text in ("", "quick", "full")] == [None, "quick", "full"]


def test_another_level_is_refused_before_the_inventory_is_read() -> None:
    calls: list[Any] = [
        lambda: verify.verify(SELECTION, CONNECTION, prove="fast"),
        lambda: changes.provision(SELECTION, CONNECTION, None, prove="fast"),  # type: ignore[arg-type]
        lambda: rebuild.rebuild(SELECTION, CONNECTION, None, prove="fast"),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(InputError, match="--prove: found 'fast', expected quick or full"):
            call()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """What a fleet was asked for, whose verification ends with the first status and proofs with the second."""
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

    monkeypatch.setattr(verify, "open_fleet", lambda *_: Fleet())
    monkeypatch.setattr(verify, "targets_of", lambda *_: ())
    monkeypatch.setattr("hostwright.prove.proving.check_names", lambda *_: None)
    return asked


def test_hosts_are_verified_and_then_proved(asked: list[tuple[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    assert verify.verify(SELECTION, CONNECTION, prove="quick", as_json=True) == 1
    assert asked == [("verify", None), ("prove", ProveOptions("quick"))]
    told = json.loads(capsys.readouterr().out)
    assert (told["hosts"], told["proofs"]["hosts"][0]["status"]) == ([], "passed")


def test_without_a_level_hosts_are_verified_alone(
    asked: list[tuple[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify.verify(SELECTION, CONNECTION, as_json=True) == 1
    assert asked == [("verify", None)]
    told = json.loads(capsys.readouterr().out)
    assert (told["hosts"], "proofs" in told) == ([], False)
